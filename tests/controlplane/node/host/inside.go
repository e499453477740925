package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// inside is the first process of the namespaces: it starts all others, and when it ends the kernel
// ends them.
func inside(s settings) error {
	syscall.CloseOnExec(lifeline)
	go endWithOwner()
	if err := mountPrivately(s); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := makeNetwork(s); err != nil {
		return fmt.Errorf("make the network: %w", err)
	}
	images, err := newImages(filepath.Join(s.Programs, "app"), s.ownImages())
	if err != nil {
		return err
	}
	processes := newProcesses(s)
	if err := listen(s, images, processes); err != nil {
		return err
	}
	if err := startNodes(s, processes); err != nil {
		return err
	}
	return processes.reap()
}

// lifeline is the end of a pipe whose other end closes with the process that started this one.
const lifeline = 3

// endWithOwner ends this process with the one that started it, if the kernel has not yet.
func endWithOwner() {
	_, _ = os.NewFile(lifeline, "lifeline").Read(make([]byte, 1))
	os.Exit(1)
}

// The values that a kubelet insists on. It would set them for the whole machine.
var kernelSettings = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// mountPrivately gives the nodes /run, /var, /proc and a few files of their own.
//
// Nothing else may be mounted on: a folder that is removed outside would drop the mount here.
func mountPrivately(s settings) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", "/run", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for _, folder := range []string{"/run/var/upper", "/run/var/work", "/run/kernel", "/run/lock"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	options := "lowerdir=/var,upperdir=/run/var/upper,workdir=/run/var/work"
	if err := syscall.Mount("overlay", "/var", "overlay", 0, options); err != nil {
		return err
	}
	for name, value := range kernelSettings {
		file := filepath.Join("/run/kernel", strings.ReplaceAll(name, "/", "."))
		if err := cover(filepath.Join("/proc/sys", name), file, value+"\n"); err != nil {
			return err
		}
	}
	// With a server that nobody reaches, a failing pull would wait for 15 s.
	return cover("/etc/resolv.conf", "/run/resolv.conf", "nameserver 127.0.0.1\n")
}

// cover shows a text in place of a file's.
func cover(path, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(file, path, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// makeNetwork makes the bridge that all pods are on; the nodes' addresses are on it as well.
func makeNetwork(s settings) error {
	commands := []string{
		"ip link set lo up",
		"ip link add cni0 type bridge",
		// The prefix is that of the pods, or the bridge plug-in refuses it.
		"ip addr add " + nodeAddress(0) + "/16 dev cni0",
		"ip link set cni0 up",
		"ip route add default via " + nodeAddress(0),
	}
	for node := 1; node < s.Nodes; node++ {
		commands = append(commands, "ip addr add "+nodeAddress(node)+"/32 dev cni0")
	}
	for _, command := range commands {
		words := strings.Fields(command)
		if output, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command, err, output)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// listen opens the registry, the way to the API server, and the way in.
func listen(s settings, images *images, processes *processes) error {
	registry, err := net.Listen("tcp", registryAddress)
	if err != nil {
		return err
	}
	go images.serve(registry)
	port := strconv.Itoa(s.Port)
	for _, address := range []string{"127.0.0.1:" + port, nodeAddress(0) + ":" + port} {
		apiserver, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go accept(apiserver, func(conn net.Conn) { forward(conn, "unix", s.outward()) })
	}
	exposed, err := net.Listen("tcp", nodeAddress(0)+":"+exposedPort)
	if err != nil {
		return err
	}
	go accept(exposed, func(conn net.Conn) { forward(conn, "unix", s.exposedSocket()) })
	inward, err := net.Listen("unix", s.inward())
	if err != nil {
		return err
	}
	go accept(inward, func(conn net.Conn) { proxy(conn, processes) })
	return nil
}

// startNodes starts a containerd and a kubelet for each node, and one kube-proxy for all.
func startNodes(s settings, processes *processes) error {
	for node := range s.Nodes {
		if err := writeNodeFiles(s, node); err != nil {
			return err
		}
		name := "containerd-" + strconv.Itoa(node)
		if err := processes.start(name, "containerd", "--config", nodeFile(node, "containerd.toml")); err != nil {
			return err
		}
	}
	if err := writeSharedFiles(s); err != nil {
		return err
	}
	for node := range s.Nodes {
		socket := nodeFile(node, "containerd.sock")
		for {
			if conn, err := net.Dial("unix", socket); err == nil {
				conn.Close()
				break
			}
			// The crate waits for the nodes, and not for ever.
			time.Sleep(10 * time.Millisecond)
		}
		name := "kubelet-" + strconv.Itoa(node)
		if err := processes.start(name, "kubelet", kubeletFlags(s, node)...); err != nil {
			return err
		}
	}
	return processes.start("kube-proxy", "kube-proxy", "--config=/run/kube-proxy.json",
		"--kubeconfig="+s.file("run/kube-proxy.kubeconfig"))
}
