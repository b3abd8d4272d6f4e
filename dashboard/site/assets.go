package site

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
)

//go:embed assets
var assetFiles embed.FS

// asset is a file that pages load.
type asset struct {
	path    string // in URLs; it contains a hash of the content, so browsers may cache it for ever
	kind    string // Content-Type
	content []byte
}

// assets maps names to the files that pages load.
type assets map[string]asset

const assetFolder = "assets"

func newAssets() (assets, error) {
	entries, err := assetFiles.ReadDir(assetFolder)
	if err != nil {
		return nil, err
	}
	all := make(assets, len(entries))
	for _, entry := range entries {
		name := entry.Name()
		content, err := assetFiles.ReadFile(path.Join(assetFolder, name))
		if err != nil {
			return nil, err
		}
		hash, extension := sha256.Sum256(content), path.Ext(name)
		all[name] = asset{
			path:    "/" + assetFolder + "/" + name[:len(name)-len(extension)] + "-" + hex.EncodeToString(hash[:6]) + extension,
			kind:    mime.TypeByExtension(extension),
			content: content,
		}
	}
	return all, nil
}

// url is the template function that returns the URL of a file.
func (a assets) url(name string) (string, error) {
	found, ok := a[name]
	if !ok {
		return "", fmt.Errorf("unknown asset %q", name)
	}
	return found.path, nil
}

// register serves the files.
func (a assets) register(mux *http.ServeMux) {
	for _, one := range a {
		mux.HandleFunc("GET "+one.path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", one.kind)
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			_, _ = w.Write(one.content)
		})
	}
}
