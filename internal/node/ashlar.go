package node

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// BuildAshlar compiles the service, once in a process, and puts the binary into dir. It
// returns its path. The working directory must be in the module.
func BuildAshlar(ctx context.Context, dir string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	built, err := buildKept()
	if err != nil {
		return "", fmt.Errorf("build ashlar/cmd/ashlar: %w", err)
	}
	return link(built, dir)
}

// link makes a binary available in dir, where an earlier one may be. It writes to no existing file:
// that may be the kept binary itself, or run. Other processes may do the same at once.
func link(built, dir string) (bin string, err error) {
	temporary, err := os.MkdirTemp(dir, ".ashlar-")
	if err != nil {
		return "", err
	}
	// The new name stays there if bin is a link to the same file already: a rename does nothing then.
	defer func() { err = cmp.Or(err, os.RemoveAll(temporary)) }()
	next := filepath.Join(temporary, "next")
	if os.Link(built, next) != nil { // dir is in another file system
		binary, err := os.ReadFile(built)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(next, binary, 0o700); err != nil {
			return "", err
		}
	}
	bin = filepath.Join(dir, filepath.Base(built))
	return bin, os.Rename(next, bin)
}

// buildKept compiles the service into the user's cache, where go build finds that nothing has
// changed: to link the service takes several seconds.
var buildKept = sync.OnceValues(func() (string, error) {
	folder, err := keptFolder()
	if err != nil {
		return "", err
	}
	bin := filepath.Join(folder, "ashlar")
	build := exec.Command("go", "build", "-o", bin, "ashlar/cmd/ashlar")
	// Within one file system, go build renames a new binary into its place. It never writes
	// to the old one, which tests may run.
	build.Env = append(os.Environ(), "GOTMPDIR="+folder)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
})

// keptFolder returns the folder in the user's cache for the binary of this module's directory.
func keptFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(cache, "ashlar-test", fmt.Sprintf("%x", sha256.Sum256(module))[:16])
	return folder, os.MkdirAll(folder, 0o700)
}

// Ashlar is the service's binary, with a data directory for one network, or a configuration
// file that names another store.
type Ashlar struct {
	Bin     string
	Data    string // empty: Config says where the stores are
	Network string
	Config  string // configuration file for Serve; empty: none
}

// place returns the flag that says where the stores are.
func (a Ashlar) place() []string {
	if a.Data == "" {
		return []string{"--config", a.Config}
	}
	return []string{"--data", a.Data}
}

// Import starts an import. genesis is a file or the name of a built-in network.
func (a Ashlar) Import(ctx context.Context, genesis string, chain ...string) (*Process, error) {
	args := slices.Concat([]string{"import"}, a.place(), []string{"--network", a.Network, "--genesis", genesis}, chain)
	return start(ctx, a.Bin, args...)
}

// ImportFromGeth starts an import that begins with the state in the data directory of a
// stopped geth.
func (a Ashlar) ImportFromGeth(ctx context.Context, genesis, data string, chain ...string) (*Process, error) {
	return a.Import(ctx, genesis, append([]string{"--state", "geth:" + data}, chain...)...)
}

// ImportOlder starts to bring the blocks before the network's first one from a node.
func (a Ashlar) ImportOlder(ctx context.Context, source string) (*Process, error) {
	return start(ctx, a.Bin, slices.Concat([]string{"import"}, a.place(), []string{"--network", a.Network, "--older", source})...)
}

// Rewind starts to take the network back to a block.
func (a Ashlar) Rewind(ctx context.Context, to uint64) (*Process, error) {
	return start(ctx, a.Bin, slices.Concat([]string{"rewind", "--network", a.Network}, a.place(), []string{"--to", strconv.FormatUint(to, 10)})...)
}

// Join starts to add the range of another data directory to the network.
func (a Ashlar) Join(ctx context.Context, from Ashlar) (*Process, error) {
	return start(ctx, a.Bin, slices.Concat([]string{"join", "--network", a.Network}, a.place(), []string{"--from", from.place()[1]})...)
}

// Copy starts to copy all networks and the accounts to another place.
func (a Ashlar) Copy(ctx context.Context, to Ashlar) (*Process, error) {
	return start(ctx, a.Bin, "copy", "--from", a.place()[1], "--to", to.place()[1])
}

// RevokeKey revokes an API key by its ID or name.
func (a Ashlar) RevokeKey(ctx context.Context, idOrName string) error {
	return run(ctx, a.Bin, slices.Concat([]string{"key", "revoke"}, a.place(), []string{idOrName})...)
}

// RestrictKey sets rules of an API key, in the flags of ashlar key restrict.
func (a Ashlar) RestrictKey(ctx context.Context, key string, rules ...string) error {
	return run(ctx, a.Bin, slices.Concat([]string{"key", "restrict"}, a.place(), rules, []string{key})...)
}

// Verify checks the network. It returns what the command prints.
func (a Ashlar) Verify(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, a.Bin, slices.Concat([]string{"verify", "--network", a.Network}, a.place())...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ashlar verify: %w\n%s", err, out)
	}
	return string(out), nil
}

// Export writes the network's blocks as history files, era1 or ere.
func (a Ashlar) Export(ctx context.Context, format, folder string) error {
	return run(ctx, a.Bin, "export", "--data", a.Data, "--network", a.Network, "--format", format, "--out", folder)
}

// CreateKey creates an API key.
func (a Ashlar) CreateKey(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, a.Bin, slices.Concat([]string{"key", "create"}, a.place())...).Output()
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

// Serve starts the service with a new key, and returns when it answers requests.
func (a Ashlar) Serve(ctx context.Context) (*Process, *Client, error) {
	key, err := a.CreateKey(ctx)
	if err != nil {
		return nil, nil, err
	}
	addr, err := FreeAddress()
	if err != nil {
		return nil, nil, err
	}
	args := []string{"serve", "--listen", addr}
	if a.Data != "" {
		args = append(args, "--data", a.Data)
	}
	if a.Config != "" {
		args = append(args, "--config", a.Config)
	}
	p, err := start(ctx, a.Bin, args...)
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

// ServeBy starts the service with a configuration file, without waiting for it.
func (a Ashlar) ServeBy(ctx context.Context, config string) (*Process, error) {
	return start(ctx, a.Bin, "serve", "--config", config)
}

// SocketURL returns the WebSocket URL of a service with an HTTP URL.
func SocketURL(url string) string {
	return strings.Replace(strings.Replace(url, "http://", "ws://", 1), "/v3/", "/ws/v3/", 1)
}

// demoURL matches the URL that the demo prints.
var demoURL = regexp.MustCompile(`http://[^ ]+/v3/[0-9a-f]+`)

// Demo starts the demo in the data directory. It returns the URL that the demo prints once it
// is ready. flags are further flags of the command.
func (a Ashlar) Demo(ctx context.Context, flags ...string) (*Process, string, error) {
	p, err := start(ctx, a.Bin, append([]string{"demo", "--data", a.Data, "--listen", "127.0.0.1:0", "--blocks", "60"}, flags...)...)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if output := p.Output(); strings.Contains(output, "Ctrl-C") {
			return p, demoURL.FindString(output), nil
		}
		select {
		case <-p.Done():
			_, err := p.Wait()
			return nil, "", errors.Join(errors.New("ashlar demo exited before it printed its URL"), err)
		case <-ctx.Done():
			p.Kill()
			return nil, "", fmt.Errorf("ashlar demo did not print its URL: %w, its last words:\n%s", ctx.Err(), p.Output())
		case <-tick.C:
		}
	}
}

// Status returns the output of ashlar status --json.
func (a Ashlar) Status(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, a.Bin, slices.Concat([]string{"status", "--json"}, a.place())...).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("ashlar status: %w\n%s", err, exit.Stderr)
	}
	return string(out), err
}

// CreateSnapshot starts to write a snapshot of the network, of the blocks from first on up to
// last.
func (a Ashlar) CreateSnapshot(ctx context.Context, folder string, first, last uint64) (*Process, error) {
	return start(ctx, a.Bin, slices.Concat([]string{"snapshot", "create"}, a.place(), []string{"--network", a.Network, "--out", folder,
		"--history-from", strconv.FormatUint(first, 10), "--block", strconv.FormatUint(last, 10)})...)
}

// LoadSnapshot starts to begin the network with a snapshot from a folder or a URL.
func (a Ashlar) LoadSnapshot(ctx context.Context, genesis, from, block string) (*Process, error) {
	return start(ctx, a.Bin, slices.Concat([]string{"snapshot", "load"}, a.place(), []string{"--network", a.Network, "--genesis", genesis, "--from", from, "--block", block})...)
}
