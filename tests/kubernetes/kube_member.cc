// A process that publishes a name: kube_member NAME SECONDS, with a lease of so many seconds. It
// prints "ready", and withdraws the name at the end of its input.
#include <iostream>
#include <string>

#include "meet/kubernetes/kubernetes.h"

int main(int, char** argv) {
  using namespace std::chrono_literals;
  const auto place = viaduct::meet::kubernetes::open({.where = "g", .detect = 1s},
                                                     std::chrono::seconds(std::stoi(argv[2])));
  const auto entry = place ? (*place)->publish(argv[1], "card", 20s) : place.error();
  std::cout << (entry ? "ready" : entry.error().text()) << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return entry ? 0 : 1;
}
