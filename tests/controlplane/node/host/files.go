package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

const registryAddress = "127.0.0.1:5000"

// exposedPort is where pods reach a server of the test, at the first node's address.
const exposedPort = "443"

func nodeName(node int) string { return "real-" + strconv.Itoa(node+1) }

// nodeAddress is that of a node. The first is the bridge's, and only it is in the pods' range.
func nodeAddress(node int) string {
	if node == 0 {
		return "10.245.0.1"
	}
	return "10.246.0." + strconv.Itoa(node)
}

// nodeFile is a file of one node, in the memory that ends with the namespaces.
func nodeFile(node int, name string) string {
	return filepath.Join("/run", nodeName(node), name)
}

func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return write(path, string(text))
}

func write(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// object is JSON, which every reader of YAML takes.
type object = map[string]any

// writeSharedFiles writes what the nodes share: networks, the registry and kube-proxy.
func writeSharedFiles(s settings) error {
	bridge := object{
		"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
		"ipam": object{
			"type": "host-local", "dataDir": "/run/addresses",
			// Without it pods reach no service.
			"routes": []object{{"dst": "0.0.0.0/0"}},
			"ranges": [][]object{{{
				"subnet": "10.245.0.0/16", "rangeStart": "10.245.0.10", "rangeEnd": "10.245.15.250",
			}}},
		},
	}
	network := object{"cniVersion": "1.0.0", "name": "pods", "plugins": []object{bridge}}
	if err := writeJSON("/run/networks/10-bridge.conflist", network); err != nil {
		return err
	}
	// Without `server` a missing image is asked of the real registry of that name.
	hosts := fmt.Sprintf("server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n"+
		"capabilities = [\"pull\", \"resolve\"]\n", registryAddress)
	if err := write("/run/registries/_default/hosts.toml", hosts); err != nil {
		return err
	}
	return writeJSON("/run/kube-proxy.json", object{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "nftables", "hostnameOverride": nodeName(0), "clusterCIDR": "10.245.0.0/16",
		"clientConnection": object{"kubeconfig": s.file("run/kube-proxy.kubeconfig")},
		// These are the whole machine's.
		"conntrack": object{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
	})
}

const containerdConfig = `version = 2
root = "/run/%[1]s/containerd-root"
state = "/run/%[1]s/containerd-state"
[grpc]
  address = "/run/%[1]s/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/%[1]s/containerd-opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "test.local/pause:1"
  # Root without CAP_SYS_RESOURCE may not lower a score.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "%[2]s/usr/sbin/runc"
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/run/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%[2]s/usr/lib/cni"
    conf_dir = "/run/networks"
`

// writeNodeFiles writes what one node reads.
func writeNodeFiles(s settings, node int) error {
	text := fmt.Sprintf(containerdConfig, nodeName(node), s.Packages)
	if err := write(nodeFile(node, "containerd.toml"), text); err != nil {
		return err
	}
	// The manager of containers and the kubelet each need a group of their own, made before.
	return writeJSON(nodeFile(node, "kubelet.json"), object{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"failCgroupV1": false, "cgroupDriver": "cgroupfs",
		"cgroupRoot": filepath.Join("/", s.Group, nodeName(node)),
		"failSwapOn": false, "makeIPTablesUtilChains": false,
		"containerRuntimeEndpoint": "unix://" + nodeFile(node, "containerd.sock"),
		"podLogsDir":               nodeFile(node, "pod-logs"),
		"resolvConf":               "", "clusterDNS": []string{"10.96.0.10"}, "clusterDomain": "cluster.local",
		"address": nodeAddress(node), "port": 10250 + node, "healthzPort": 10350 + node, "readOnlyPort": 0,
		"tlsCertFile": s.file("pki/kubelet.crt"), "tlsPrivateKeyFile": s.file("pki/kubelet.key"),
		"authentication": object{
			"anonymous": object{"enabled": false}, "webhook": object{"enabled": false},
			"x509": object{"clientCAFile": s.file("pki/ca.crt")},
		},
		"authorization": object{"mode": "AlwaysAllow"},
		"evictionHard": object{
			"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%",
		},
		"imageGCHighThresholdPercent": 100, "serializeImagePulls": false, "registryPullQPS": 0,
		"nodeStatusUpdateFrequency": "5s", "syncFrequency": "1s", "eventRecordQPS": 0,
		// With it and the frequency above, a container that crashes is seen in all its states.
		"crashLoopBackOff": object{"maxContainerRestartPeriod": "2s"},
	})
}

func kubeletFlags(s settings, node int) []string {
	return []string{
		"--config=" + nodeFile(node, "kubelet.json"),
		"--kubeconfig=" + s.file("run/"+nodeName(node)+".kubeconfig"),
		"--hostname-override=" + nodeName(node),
		"--node-ip=" + nodeAddress(node),
		"--root-dir=" + nodeFile(node, "kubelet"),
		"--cert-dir=" + nodeFile(node, "certificates"),
		"--node-labels=controlplane/node=real",
	}
}
