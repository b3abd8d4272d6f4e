package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/app"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// demoOf makes a network of a data directory as a family's demo does.
func demoOf(t *testing.T, f family.Family, dir, name string, blocks uint64) {
	t.Helper()
	demo, err := f.Demo()
	if err == nil {
		place, placeErr := app.Place(t.Context(), store.Dir(dir), f, name)
		if placeErr != nil {
			t.Fatal(placeErr)
		}
		err = demo.Create(t.Context(), place, blocks)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func named(t *testing.T, name string) family.Family {
	t.Helper()
	f, err := app.Families().Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// smallNetwork makes a data directory with a network of a few blocks.
func smallNetwork(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	demoOf(t, named(t, "evm"), dir, "small", 4)
	opened, err := store.Dir(dir).OpenNetwork("small", kv.Options{})
	if err == nil {
		err = errors.Join(opened.Compact(t.Context()), opened.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files are a network's files with what is in them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	paths, err := filepath.Glob(filepath.Join(dir, "networks", "small", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = string(content)
	}
	return all
}

func runVerify(ctx context.Context, v Verify) (string, error) {
	var out bytes.Buffer
	v.Network, v.To = cmp.Or(v.Network, "small"), Head
	err := v.Run(ctx, &out, os.Stderr)
	return out.String(), err
}

// TestVerifySound: the answer in both forms, and that no file is another afterwards.
func TestVerifySound(t *testing.T) {
	dir := smallNetwork(t)
	before := files(t, dir)
	text, err := runVerify(t.Context(), Verify{Data: dir})
	if err != nil || !strings.HasPrefix(text, "small: 5 blocks, ") || !strings.HasSuffix(text, ": sound\n") {
		t.Errorf("%q, %v", text, err)
	}
	text, err = runVerify(t.Context(), Verify{Data: dir, Verification: family.Verification{Full: true}, JSON: true})
	var answer struct {
		Network string
		Sound   bool
		Blocks  int
	}
	if err := errors.Join(err, json.Unmarshal([]byte(text), &answer)); err != nil || answer.Network != "small" || !answer.Sound || answer.Blocks != 5 {
		t.Errorf("%s, %v", text, err)
	}
	if after := files(t, dir); !maps.Equal(before, after) {
		t.Error("verifying has changed files")
	}
}

// TestVerifyDamagedFiles: what the engine finds of its own files is a finding too.
func TestVerifyDamagedFiles(t *testing.T) {
	dir := smallNetwork(t)
	var table string
	for path, content := range files(t, dir) {
		if strings.HasSuffix(path, ".sst") && len(content) > 50_000 {
			table = path
		}
	}
	whole, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int{0, 4, 8} { // eighths of the file, of which rows are the first
		broken := bytes.Clone(whole)
		broken[len(broken)*at/10+99] ^= 4
		if err := os.WriteFile(table, broken, 0o644); err != nil {
			t.Fatal(err)
		}
		text, err := runVerify(t.Context(), Verify{Data: dir})
		if err == nil || !strings.Contains(text, "the store's files are damaged") {
			t.Errorf("a flipped bit: %q, %v", text, err)
		}
	}
	if err := os.Remove(table); err != nil {
		t.Fatal(err)
	}
	text, err := runVerify(t.Context(), Verify{Data: dir})
	if err == nil || !strings.Contains(text, "a store that opens") {
		t.Errorf("a missing file: %q, %v", text, err)
	}
	const advice = "if the store's files are damaged, check the disk and restore a backup"
	if _, err := app.OpenNetwork(t.Context(), store.Dir(dir), "small", config.Network{}, kv.Options{}); err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("a server says %v, expected %q", err, advice)
	}
}

// demoStarknet is the demo's Starknet network.
const demoStarknet = "demo-starknet"

// TestVerifyStarknet: a Starknet network as the demo has it, and what is not asked of one.
func TestVerifyStarknet(t *testing.T) {
	dir := t.TempDir()
	demoOf(t, named(t, "starknet"), dir, demoStarknet, 3)
	text, err := runVerify(t.Context(), Verify{Data: dir, Network: demoStarknet})
	if err != nil || !strings.Contains(text, " events, the hashes of 0 blocks recomputed and of ") || !strings.HasSuffix(text, ": sound\n") {
		t.Errorf("%q, %v", text, err)
	}
	text, err = runVerify(t.Context(), Verify{Data: dir, Network: demoStarknet, JSON: true})
	var answer struct {
		Network                   string
		Sound                     bool
		Blocks, Recomputed, Taken uint64
		States                    *int
	}
	if err := errors.Join(err, json.Unmarshal([]byte(text), &answer)); err != nil || answer.Network != demoStarknet || !answer.Sound || answer.Blocks == 0 || answer.Taken != answer.Blocks || answer.States != nil {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := runVerify(t.Context(), Verify{Data: dir, Network: demoStarknet, Verification: family.Verification{Full: true}}); !errors.Is(err, family.ErrNoState) {
		t.Errorf("with the state: %v, want ErrNoState", err)
	}
	if _, err := runVerify(t.Context(), Verify{Data: dir, Network: demoStarknet, Verification: family.Verification{From: answer.Blocks}}); !errors.Is(err, family.ErrRange) {
		t.Errorf("blocks above the head: %v, want ErrRange", err)
	}
}

// TestVerifyRealStarknet: what an import brought in is sound, with every hash recomputed.
func TestVerifyRealStarknet(t *testing.T) {
	dir := t.TempDir()
	if err := importFiles(t, dir, "integration", "SN_INTEGRATION_SEPOLIA", "sepolia-integration_block_35748.json", "sepolia-integration_block_35749.json"); err != nil {
		t.Fatal(err)
	}
	text, err := runVerify(t.Context(), Verify{Data: dir, Network: "integration"})
	if err != nil || !strings.HasPrefix(text, "integration: 2 blocks, ") || !strings.Contains(text, "the hashes of 2 blocks recomputed and of 0 taken as stored") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestVerifyRefuses: what is no finding.
func TestVerifyRefuses(t *testing.T) {
	dir := smallNetwork(t)
	if _, err := runVerify(t.Context(), Verify{Data: dir, Verification: family.Verification{From: 5}}); !errors.Is(err, family.ErrRange) {
		t.Errorf("blocks above the head: %v", err)
	}
	if _, err := runVerify(t.Context(), Verify{Data: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "import it first") {
		t.Errorf("a network that is not there: %v", err)
	}
	opened, err := store.Dir(dir).OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := runVerify(t.Context(), Verify{Data: dir}); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("a network in use: %v", err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := runVerify(ctx, Verify{Data: dir}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
