package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

// images is a registry that has an image under every name and tag: one program, which knows its
// tag. Some names are refused, and some are those of images with folders of their own.
type images struct {
	layer string
	own   string
	lock  sync.Mutex
	blobs map[string][]byte
}

// The answers for images of these names.
var refusals = map[string]int{
	"missing": http.StatusNotFound,
	"denied":  http.StatusUnauthorized,
	"failing": http.StatusInternalServerError,
}

func newImages(program, own string) (*images, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	header := tar.Header{Name: "app", Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := archive.WriteHeader(&header); err != nil {
		return nil, err
	}
	if _, err := archive.Write(content); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	made := &images{own: own, blobs: map[string][]byte{}}
	made.layer = made.keep(layer.Bytes())
	return made, nil
}

// keep remembers bytes under their digest.
func (i *images) keep(content []byte) string {
	sum := sha256.Sum256(content)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	i.lock.Lock()
	defer i.lock.Unlock()
	i.blobs[digest] = content
	return digest
}

// find returns the layer and the settings of an image: those of its folder, if it has one.
func (i *images) find(name, tag string) (layer string, settings any, err error) {
	text, err := os.ReadFile(filepath.Join(i.own, name, "settings.json"))
	if err == nil {
		layer, err := os.ReadFile(filepath.Join(i.own, name, "layer.tar"))
		return i.keep(layer), json.RawMessage(text), err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	command := "serve"
	if name == "pause" {
		command = "pause"
	}
	return i.layer, object{
		"User": "65532:65532", "Env": []string{"VERSION=" + tag}, "WorkingDir": "/",
		"Entrypoint": []string{"/app"}, "Cmd": []string{command},
	}, nil
}

// manifest makes the image of a name and a tag.
func (i *images) manifest(name, tag string) (string, error) {
	layer, settings, err := i.find(name, tag)
	if err != nil {
		return "", err
	}
	config, err := json.Marshal(object{
		"architecture": "amd64", "os": "linux", "config": settings,
		"rootfs": object{"type": "layers", "diff_ids": []string{layer}},
	})
	if err != nil {
		return "", err
	}
	describe := func(kind, digest string) object {
		return object{"mediaType": kind, "digest": digest, "size": len(i.blob(digest))}
	}
	manifest, err := json.Marshal(object{
		"schemaVersion": 2, "mediaType": manifestType,
		"config": describe(configType, i.keep(config)),
		"layers": []object{describe(layerType, layer)},
	})
	if err != nil {
		return "", err
	}
	return i.keep(manifest), nil
}

func (i *images) blob(digest string) []byte {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.blobs[digest]
}

func (i *images) serve(listener net.Listener) {
	check(http.Serve(listener, http.HandlerFunc(i.answer)))
}

// answer serves /v2/, /v2/NAME/manifests/TAG and /v2/NAME/blobs/DIGEST.
func (i *images) answer(answer http.ResponseWriter, request *http.Request) {
	words := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(words) < 4 {
		answer.WriteHeader(http.StatusOK)
		return
	}
	name, kind, reference := words[len(words)-3], words[len(words)-2], words[len(words)-1]
	if status := refusals[name]; status != 0 {
		http.Error(answer, fmt.Sprintf("%s is refused by this registry", name), status)
		return
	}
	if kind == "manifests" && !strings.HasPrefix(reference, "sha256:") {
		digest, err := i.manifest(name, reference)
		if err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		reference = digest
	}
	content := i.blob(reference)
	if content == nil {
		http.NotFound(answer, request)
		return
	}
	if kind == "manifests" {
		answer.Header().Set("Content-Type", manifestType)
	} else {
		answer.Header().Set("Content-Type", "application/octet-stream")
	}
	answer.Header().Set("Docker-Content-Digest", reference)
	answer.Header().Set("Content-Length", fmt.Sprint(len(content)))
	if request.Method != http.MethodHead {
		_, _ = answer.Write(content)
	}
}
