package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/internal/node"
)

// guided matches what the programs of the guide print: a block number, also as an answer of JSON-RPC.
var guided = regexp.MustCompile(`(?m)^\d+n?$|"result":"0x[0-9a-f]+"`)

// marked matches a block of code in the guide that this test runs, and what runs it.
var marked = regexp.MustCompile("(?s)<!-- run: ([a-z0-9.]+) -->\n```[a-z]*\n(.*?)```")

// The programs in docs/guides/tools.md work as they are, with the URLs of a server.
func TestGuideOfTools(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	text, err := os.ReadFile("../../docs/guides/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	urls := strings.NewReplacer(
		"http://127.0.0.1:8545/demo/v3/KEY", s.url, "ws://127.0.0.1:8545/demo/ws/v3/KEY", node.SocketURL(s.url),
		"http://127.0.0.1:8545/demo-starknet/v3/KEY", strings.Replace(s.url, "/v3/", "/demo-starknet/v3/", 1),
	)
	found := marked.FindAllStringSubmatch(string(text), -1)
	if len(found) < 6 {
		t.Fatalf("the guide has %d programs to run, want at least 6", len(found))
	}
	for _, match := range found {
		runner, program := match[1], urls.Replace(match[2])
		ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
		defer cancel()
		command := exec.CommandContext(ctx, "sh", "-c", program)
		switch runner {
		case "node":
			command = exec.CommandContext(ctx, "node", "--input-type=module", "-e", program)
		case "web3.py":
			command = exec.CommandContext(ctx, filepath.Join(dir, "venv", "bin", "python"), "-c", program)
		case "starknet.py":
			command = exec.CommandContext(ctx, filepath.Join(dir, "starknet-venv", "bin", "python"), "-c", program)
		case "sh":
			command.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "node_modules", ".bin")+":"+os.Getenv("PATH"))
		default:
			t.Fatalf("the guide has a program for %q, which this test cannot run", runner)
		}
		command.Dir = dir
		if strings.Contains(program, "127.0.0.1:8545") {
			t.Errorf("%s: a URL is not that of the guide's other programs:\n%s", runner, program)
		}
		var failure strings.Builder
		command.Stderr = &failure
		if out, err := command.Output(); err != nil || !guided.MatchString(string(out)) {
			t.Errorf("%s: %v, printed %q\n%s\n%s", runner, err, out, program, &failure)
		}
	}
}
