// Texts of Kubernetes, name resolution and connections: what fails before the first transfer.
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

using enum TextKind;

std::vector<KnownText> scheduling() {
  return {{"log.k8s-insufficient",
           kError,
           {{"Insufficient vpc.amazonaws.com/efa"},
            {"Insufficient nvidia.com/gpu"},
            {"Insufficient hugepages-"},
            {"Insufficient rdma/"},
            {"Insufficient openshift.io/"}},
           "no node has that much of a resource free",
           "The pod waits for a node with enough free devices or huge pages.",
           {{"The device plugin does not run, so nodes offer none.",
             {},
             "kubectl describe node NODE: \"Allocatable\" lists what the node offers. Look at the "
             "device plugin's pods in kube-system."},
            {"Other pods have them.", {}, "Ask for fewer, or add nodes."},
            {"The node reserved no huge pages at its boot.",
             {},
             "Boot with hugepages=N, or drop the request."}}},
          {"log.k8s-runtime-class",
           kError,
           {{"RuntimeClass ", "not found"}},
           "the cluster does not have the pod's RuntimeClass",
           "The pod names a container runtime that the cluster does not know.",
           {{"NVIDIA's runtime is the default one here, and has no class.",
             {},
             "Leave runtimeClassName out."},
            {"The GPU Operator is not installed.", {}, "Install it."}}},
          {"log.k8s-scc",
           kError,
           {{"unable to validate against any security context constraint"}},
           "OpenShift forbids the pod's rights",
           "No security context constraint of the service account allows what the pod asks for.",
           {{"The service account may not use IPC_LOCK.",
             {},
             "oc adm policy add-scc-to-user SCC -z SERVICEACCOUNT, with an SCC that allows "
             "IPC_LOCK."}}},
          {"log.k8s-network",
           kError,
           {{"cannot find a network-attachment-definition"}},
           "the pod's secondary network is not in this namespace",
           "The pod names a network attachment that its namespace does not have.",
           {{"The SriovNetwork is for another namespace.",
             {},
             "oc get sriovnetwork -n openshift-sriov-network-operator: see networkNamespace."}}},
          {"log.k8s-config",
           kError,
           {{"CreateContainerConfigError"}, {"Error: secret ", "not found"}},
           "a secret or config map of the pod is missing",
           "The pod names a secret or config map that its namespace does not have.",
           {{"The secret of the members was not made.",
             {},
             "kubectl create secret generic viaduct --from-literal=token=\"$(openssl rand -hex "
             "32)\"."}}}};
}

std::vector<KnownText> images() {
  return {{"log.image-pull",
           kError,
           {{"ErrImagePull"}, {"ImagePullBackOff"}},
           "the image cannot be fetched",
           "The registry refused, or does not have the image.",
           {{"The name or tag is wrong, or the pull secret is missing.",
             {},
             "kubectl describe pod POD has the registry's answer."}}},
          {"log.image-platform",
           kError,
           {{"no match for platform in manifest"}, {"xec format error"}},
           "the image is for another processor architecture",
           "The node's processor cannot run the programs of the image.",
           {{"The image was built on another architecture.",
             {},
             "kubectl get node NODE -o jsonpath={.status.nodeInfo.architecture}; build or choose "
             "the image for it."}}},
          {"log.no-cuda-driver",
           kError,
           {{"libcuda.so.1: cannot open shared object file"}},
           "the container has no GPU driver",
           "The driver's user libraries come from the node. The container was not given them.",
           {{"The pod asks for no GPU, or its runtime is not NVIDIA's.",
             {},
             "Ask for nvidia.com/gpu, and set runtimeClassName: nvidia where the cluster has it."},
            {"The image hides the driver's parts.",
             {},
             "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility."}}}};
}

std::vector<KnownText> connections() {
  return {
      {"log.etcd-uri",
       kError,
       {{"the target uri is not valid"}},
       "the etcd client got no address for the name",
       "The client of nixlbench resolves the name once, at its start. DNS had no answer yet, or "
       "the address is malformed.",
       {{"The name was resolved before DNS had it.",
         {},
         "Type the same command with the nixlbench of Viaduct: it tries again until its deadline."},
        {"The name is wrong, or is in another namespace.",
         {},
         "getent hosts NAME in the pod. A headless service needs publishNotReadyAddresses: "
         "true."}}},
      {"log.name-unresolved",
       kError,
       {{"Could not resolve host"},
        {"Name or service not known"},
        {"Temporary failure in name resolution"}},
       "a host name has no address here",
       "DNS does not know the name, or does not answer.",
       {{"The pod behind the name is not ready yet.",
         {},
         "A headless service needs publishNotReadyAddresses: true."},
        {"The name is wrong, or is in another namespace.", {}, "getent hosts NAME."}}},
      {"log.connection-refused",
       kError,
       {{"connect", "Connection refused"}},
       "nobody listens at the address",
       "The host answered that no program listens at this port.",
       {{"The other program has not started, or ended.", {}, "Look at its log."},
        {"It listens on loopback only, or at another port.",
         {},
         "ss -ltn on the other host shows the addresses at which programs listen."}}}};
}

}  // namespace

std::vector<KnownText> podTexts() {
  std::vector<KnownText> out = scheduling();
  for (KnownText& text : images()) out.push_back(text);
  for (KnownText& text : connections()) out.push_back(text);
  return out;
}

}  // namespace viaduct::diag
