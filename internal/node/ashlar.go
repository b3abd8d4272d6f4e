package node

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// BuildAshlar compiles the service into dir and returns the binary's path. It
// works from anywhere inside the module.
func BuildAshlar(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "ashlar")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "ashlar/cmd/ashlar").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building ashlar/cmd/ashlar: %w\n%s", err, out)
	}
	return bin, nil
}

// Ashlar is the service's binary with a data directory that holds one network.
type Ashlar struct {
	Bin     string
	Data    string
	Network string
}

// Import starts an import. genesis is a file, or the name of a built-in network.
func (a Ashlar) Import(ctx context.Context, genesis string, chain ...string) (*Process, error) {
	args := []string{"import", "--data", a.Data, "--network", a.Network, "--genesis", genesis}
	return start(ctx, a.Bin, append(args, chain...)...)
}

// CreateKey makes an API key.
func (a Ashlar) CreateKey(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, a.Bin, "key", "create", "--data", a.Data).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("ashlar key create: %w\n%s", err, exit.Stderr)
	} else if err != nil {
		return "", err
	}
	key := strings.TrimSuffix(string(out), "\n")
	if key == "" || strings.ContainsAny(key, " \n/") {
		return "", fmt.Errorf("ashlar key create: want the key alone on stdout, got %q", out)
	}
	return key, nil
}

// Serve starts the service with a fresh key and returns when it answers.
func (a Ashlar) Serve(ctx context.Context) (*Process, *Client, error) {
	key, err := a.CreateKey(ctx)
	if err != nil {
		return nil, nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	p, err := start(ctx, a.Bin, "serve", "--data", a.Data, "--listen", addr)
	if err != nil {
		return nil, nil, err
	}
	c := NewClient("http://" + addr + "/v3/" + key)
	if err := p.awaitReady(ctx, c); err != nil {
		p.Kill()
		return nil, nil, fmt.Errorf("ashlar serve: %w", err)
	}
	return p, c, nil
}
