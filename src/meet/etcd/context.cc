#include "meet/etcd/context.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <utility>

#include "base/fd.h"
#include "base/file_error.h"

namespace viaduct::meet::etcd {
namespace {

constexpr std::chrono::seconds kGoodbye{1};

Status readable(const std::string& file, const char* what) {
  if (file.empty()) return Ok{};
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return Ok{};
  return base::fileError(fmt::format("etcd: open {}", what), errno, file);
}

Status check(const PlaceOptions& options, const std::vector<EtcdEndpoint>& endpoints) {
  VIADUCT_CHECK(readable(options.ca_file, "the CA file"));
  VIADUCT_CHECK(readable(options.certificate_file, "the client's certificate"));
  VIADUCT_CHECK(readable(options.key_file, "the client's key"));
  if (options.certificate_file.empty() != options.key_file.empty())
    return Error{.operation = "etcd",
                 .detail = options.key_file.empty()
                               ? "a client certificate was given without its key"
                               : "a client key was given without its certificate",
                 .remedy = "give both files, or neither"};
  if (options.user.empty() && !options.password.empty())
    return Error{.operation = "etcd", .detail = "a password was given without a user"};
  const bool tls = std::ranges::any_of(endpoints, &EtcdEndpoint::tls);
  if (!tls && !(options.ca_file.empty() && options.certificate_file.empty()))
    return Error{.operation = "etcd",
                 .detail = "certificates were given, but no endpoint begins with https://",
                 .remedy = "write https:// before the endpoints, or omit the certificates"};
  return Ok{};
}

}  // namespace

Result<std::shared_ptr<EtcdContext>> EtcdContext::open(const PlaceOptions& options) {
  VIADUCT_TRY(auto endpoints, parseEndpoints(options.where));
  VIADUCT_CHECK(check(options, endpoints));
  std::shared_ptr<EtcdContext> context(new EtcdContext);
  context->token_ = options.token;
  context->waiting_ = options.waiting;
  context->space_.root = options.name_space.empty() ? "/viaduct" : options.name_space;
  while (context->space_.root.ends_with('/')) context->space_.root.pop_back();
  context->text_ = "etcd";
  for (const EtcdEndpoint& one : endpoints)
    context->text_ += (&one == endpoints.data() ? " " : ",") + one.url();
  VIADUCT_TRY(context->loop_,
              CurlLoop::open({options.ca_file, options.certificate_file, options.key_file}));
  context->client_ = std::make_unique<Client>(
      *context->loop_, Client::Config{std::move(endpoints), options.user, options.password});
  context->lease_ = std::make_unique<Lease>(*context->loop_, *context->client_, options.detect);
  return context;
}

void EtcdContext::run(const std::function<void()>& task) {
  std::promise<void> ran;
  loop_->post([&] {
    task();
    ran.set_value();
  });
  ran.get_future().wait();
}

void EtcdContext::txn(const Txn& txn, Clock::time_point until,
                      std::function<void(Result<TxnReply>)> done) {
  client_->call(kTxnPath, toJson(txn), until, [done = std::move(done)](Result<std::string> body) {
    if (!body) return done(std::move(body).error());
    done(parseTxn(*body));
  });
}

void EtcdContext::takeBack(const std::function<void()>& done) {
  lease_->stop();
  client_->whenIdle([this, done] {
    if (lease_->id() == 0) return done();
    client_->call(kRevokePath, leaseJson(lease_->id()), Clock::now() + kGoodbye,
                  [done](const Result<std::string>&) { done(); });
  });
}

EtcdContext::~EtcdContext() {
  if (!loop_) return;
  if (lease_) {
    auto done = std::make_shared<std::promise<void>>();
    auto taken_back = done->get_future();
    loop_->post([this, done] { takeBack([done] { done->set_value(); }); });
    taken_back.wait_for(kGoodbye);
  }
  // Both have timers and exchanges in the loop, so they end where it runs.
  run([this] {
    lease_.reset();
    client_.reset();
  });
}

}  // namespace viaduct::meet::etcd
