package differential

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"
)

// TestStartFromDamagedGeth: a start from a directory of geth whose files are damaged, missing
// or of another chain either fails with a message, or what it makes is sound.
func TestStartFromDamagedGeth(t *testing.T) {
	t.Parallel()
	s := newDamagedStart(t)
	for _, c := range []struct {
		file   string // the largest with this pattern is damaged
		damage func([]byte) []byte
	}{
		{"geth/chaindata/*.sst", truncate}, {"geth/chaindata/*.sst", flip}, {"geth/chaindata/*.sst", nil},
		{"geth/chaindata/*.log", truncate}, {"geth/chaindata/*.log", flip},
		{"geth/chaindata/MANIFEST-*", truncate}, {"geth/chaindata/MANIFEST-*", flip},
		{"geth/triedb/merkle.journal", truncate}, {"geth/triedb/merkle.journal", flip}, {"geth/triedb/merkle.journal", nil},
	} {
		name := strings.ReplaceAll(c.file, "/", " ")
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "geth")
			if err := os.CopyFS(data, os.DirFS(s.geth.Data)); err != nil {
				t.Fatal(err)
			}
			path := largest(t, filepath.Join(data, c.file))
			if path == "" {
				t.Skip("geth has no such file")
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.damage == nil {
				err = os.Remove(path)
			} else {
				err = os.WriteFile(path, c.damage(content), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			s.try(t, s.genesis, data)
		})
	}
	t.Run("another genesis", func(t *testing.T) {
		text, err := os.ReadFile(s.genesis)
		if err != nil {
			t.Fatal(err)
		}
		other := filepath.Join(t.TempDir(), "genesis.json")
		if err := os.WriteFile(other, regexp.MustCompile(`"timestamp":\s*"0x[0-9a-f]+"`).ReplaceAll(text, []byte(`"timestamp":"0x77"`)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := s.try(t, other, s.geth.Data); !strings.Contains(out, "its genesis is") {
			t.Errorf("refused for another reason: %s", out)
		}
	})
	t.Run("a running geth", func(t *testing.T) {
		p, _, err := s.geth.Serve(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Kill()
		if out := s.try(t, s.genesis, s.geth.Data); !strings.Contains(out, "geth is running") {
			t.Errorf("the directory of a running geth: %q", out)
		}
	})
}

// TestStartFromGethKilled kills starts at random moments and runs them again.
func TestStartFromGethKilled(t *testing.T) {
	t.Parallel()
	s := newDamagedStart(t)
	t.Logf("seed %d", *seed)
	random := rand.New(rand.NewPCG(*seed, 7))
	a := newAshlar(t, "")
	for range 4 {
		p, err := a.ImportFromGeth(t.Context(), s.genesis, s.geth.Data)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		p.Kill()
	}
	p, err := a.ImportFromGeth(t.Context(), s.genesis, s.geth.Data)
	awaitImport(t, p, err)
	if out, err := a.Verify(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// damagedStart is a stopped geth to start from.
type damagedStart struct {
	genesis string
	geth    node.Geth
}

func newDamagedStart(t *testing.T) damagedStart {
	t.Helper()
	folder := generateChain(t, 60, 6)
	genesis := filepath.Join(folder, "genesis.json")
	return damagedStart{genesis, importIntoGeth(t, node.PathScheme, true, genesis, filepath.Join(folder, "chain.rlp"))}
}

// try starts from a directory. It returns the message of the failure, or "" if the start
// succeeded and the network is sound.
func (s damagedStart) try(t *testing.T, genesis, data string) string {
	t.Helper()
	a := newAshlar(t, "")
	p, err := a.ImportFromGeth(t.Context(), genesis, data)
	if err != nil {
		t.Fatal(err)
	}
	code, out := p.ExitCode(), p.Output()
	if code == 0 {
		t.Log("started")
		if out, err := a.Verify(t.Context()); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return ""
	}
	t.Logf("refused: %s", out)
	if code != 1 || strings.Contains(out, "goroutine") || strings.TrimSpace(out) == "" {
		t.Errorf("exit code %d, want 1 and a message", code)
	}
	return out
}

// largest returns the largest file with a pattern, or "".
func largest(t *testing.T, pattern string) (path string) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var size int64 = -1
	for _, candidate := range paths {
		var info fs.FileInfo
		if info, err = os.Stat(candidate); err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			path, size = candidate, info.Size()
		}
	}
	return path
}

func truncate(content []byte) []byte { return content[:len(content)/2] }

func flip(content []byte) []byte {
	content[len(content)/3] ^= 0x10
	return content
}
