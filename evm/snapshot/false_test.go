package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
	"ashlar/history/rows"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/klauspost/compress/zstd"
)

// forged is a copy of a snapshot that is changed.
type forged struct {
	t        *testing.T
	folder   string
	manifest map[string]any
}

func newForged(t *testing.T, files map[string]string) *forged {
	t.Helper()
	f := &forged{t: t, folder: t.TempDir()}
	for name, content := range files {
		f.write(name, []byte(content))
	}
	decoder := json.NewDecoder(strings.NewReader(files["manifest.json"]))
	decoder.UseNumber()
	if err := decoder.Decode(&f.manifest); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forged) write(name string, content []byte) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.folder, name), content, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *forged) read(name string) []byte {
	f.t.Helper()
	content, err := os.ReadFile(filepath.Join(f.folder, name))
	if err != nil {
		f.t.Fatal(err)
	}
	return content
}

// claim changes the manifest.
func (f *forged) claim(change func(m map[string]any)) {
	f.t.Helper()
	change(f.manifest)
	text, err := json.Marshal(f.manifest)
	if err != nil {
		f.t.Fatal(err)
	}
	f.write("manifest.json", text)
}

func (f *forged) chunks(kind string) []any {
	return f.manifest["chunks"].(map[string]any)[kind].([]any)
}

// state tells the states of snapshots apart.
func (f *forged) state() string { return fmt.Sprint(f.chunks("accounts"), f.chunks("slots")) }

func (f *forged) chunk(kind string, index int) map[string]any {
	return f.chunks(kind)[index].(map[string]any)
}

func (f *forged) name(kind string, index int) string {
	return fmt.Sprintf("%s-%05d-%s.zst", kind, index, f.chunk(kind, index)["sha256"].(string)[:16])
}

// replace replaces the file of a chunk, with a manifest that names the new one.
func (f *forged) replace(kind string, index int, packed []byte, raw int) {
	f.t.Helper()
	hash := sha256.Sum256(packed)
	f.claim(func(map[string]any) {
		c := f.chunk(kind, index)
		c["sha256"], c["bytes"], c["raw"] = hex.EncodeToString(hash[:]), len(packed), raw
	})
	f.write(f.name(kind, index), packed)
}

// edit changes the content of a chunk.
func (f *forged) edit(kind string, index int, change func(raw []byte) []byte) {
	f.t.Helper()
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	defer decoder.Close()
	raw, err := decoder.DecodeAll(f.read(f.name(kind, index)), nil)
	if err != nil {
		f.t.Fatal(err)
	}
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		f.t.Fatal(err)
	}
	raw = change(raw)
	f.replace(kind, index, encoder.EncodeAll(raw, nil), len(raw))
}

// editRLP changes the first record of a chunk of blocks.
func editRLP[T any](f *forged, kind string, change func(*T)) {
	f.t.Helper()
	f.edit(kind, 0, func(raw []byte) []byte {
		length, size := binary.Uvarint(raw)
		value := new(T)
		if err := rlp.DecodeBytes(raw[size:size+int(length)], value); err != nil {
			f.t.Fatal(err)
		}
		change(value)
		encoded, err := rlp.EncodeToBytes(value)
		if err != nil {
			f.t.Fatal(err)
		}
		return append(append(binary.AppendUvarint(nil, uint64(len(encoded))), encoded...), raw[size+int(length):]...)
	})
}

type blockRecord struct {
	Block      *types.Block
	Receipts   types.Receipts
	AccessList []byte
}

// damage is what is wrong with a snapshot, and the error that says so.
type damage struct {
	do    func(f *forged)
	kind  error  // the error is one; nil: any
	place string // and has this in it
}

// damagedFiles are files that are not what they were, or that the manifest describes wrongly.
var damagedFiles = map[string]damage{
	"a chunk cut short": {func(f *forged) {
		name := f.name("slots", 1)
		f.write(name, f.read(name)[:100])
	}, snapshot.ErrDamaged, "slots-00001-"},
	"a byte of a chunk": {func(f *forged) {
		name := f.name("accounts", 1)
		content := f.read(name)
		content[len(content)/2] ^= 1
		f.write(name, content)
	}, snapshot.ErrDamaged, "accounts-00001-"},
	"files swapped": {func(f *forged) {
		a, b := f.name("accounts", 0), f.name("accounts", 1)
		first, second := f.read(a), f.read(b)
		f.write(a, second)
		f.write(b, first)
	}, snapshot.ErrDamaged, "accounts-0000"},
	"a chunk is missing": {func(f *forged) {
		if err := os.Remove(filepath.Join(f.folder, f.name("blocks", 0))); err != nil {
			f.t.Fatal(err)
		}
	}, os.ErrNotExist, "blocks-00000-"},
	"chunks swapped in the manifest": {func(f *forged) {
		f.claim(func(map[string]any) {
			all := f.chunks("slots")
			all[0], all[1] = all[1], all[0]
		})
	}, snapshot.ErrDamaged, "manifest.json: the snapshot is damaged: slots[1]"},
	"the manifest cut short": {func(f *forged) {
		f.write("manifest.json", f.read("manifest.json")[:500])
	}, snapshot.ErrDamaged, "manifest.json"},
	"an unknown member": {func(f *forged) {
		f.claim(func(m map[string]any) { m["more"] = 1 })
	}, snapshot.ErrDamaged, "manifest.json"},
	"another format": {func(f *forged) {
		f.claim(func(m map[string]any) { m["format"] = "ashlar-evm-snapshot-2" })
	}, snapshot.ErrDamaged, "want ashlar-evm-snapshot-1"},
	"a name that leads out": {func(f *forged) {
		f.claim(func(map[string]any) {
			f.chunk("slots", 0)["sha256"] = "../../../../../../../../../../../../../etc/passwd"
		})
	}, snapshot.ErrDamaged, "want 64 lower-case hexadecimal digits"},
	"a kind that leads out": {func(f *forged) {
		f.claim(func(m map[string]any) { m["chunks"].(map[string]any)["../x"] = []any{} })
	}, snapshot.ErrDamaged, "unknown kind"},
	"a giant file": {func(f *forged) {
		f.claim(func(map[string]any) { f.chunk("slots", 0)["bytes"] = uint64(1) << 62 })
	}, snapshot.ErrDamaged, "slots[0]"},
	"a giant chunk": {func(f *forged) {
		f.claim(func(map[string]any) { f.chunk("slots", 0)["raw"] = uint64(1) << 40 })
	}, snapshot.ErrDamaged, "slots[0]"},
	"a size below 0": {func(f *forged) {
		f.claim(func(map[string]any) { f.chunk("slots", 0)["raw"] = -1 })
	}, snapshot.ErrDamaged, "slots[0]"},
	"a chunk that expands": {func(f *forged) {
		encoder, err := zstd.NewWriter(nil)
		if err != nil {
			f.t.Fatal(err)
		}
		f.replace("accounts", 0, encoder.EncodeAll(make([]byte, 256<<20), nil), 1000)
	}, snapshot.ErrDamaged, "accounts-00000-"},
}

// falseManifests make false claims about the chain.
var falseManifests = map[string]damage{
	"another genesis": {func(f *forged) {
		f.claim(func(m map[string]any) { m["genesis"] = m["head"].(map[string]any)["hash"] })
	}, snapshot.ErrFalse, "its genesis"},
	"another chain": {func(f *forged) {
		f.claim(func(m map[string]any) { m["chainId"] = "2" })
	}, snapshot.ErrFalse, "its chain ID"},
	"another head": {func(f *forged) {
		f.claim(func(m map[string]any) { m["head"] = map[string]any{"number": headNumber, "hash": m["genesis"]} })
	}, snapshot.ErrFalse, "its head"},
	"another number of the head": {func(f *forged) {
		f.claim(func(m map[string]any) { m["head"].(map[string]any)["number"] = headNumber + 1 })
	}, snapshot.ErrDamaged, "header of block 36 is missing"},
	"another block with state": {func(f *forged) {
		f.claim(func(m map[string]any) { m["state"].(map[string]any)["hash"] = m["genesis"] })
	}, snapshot.ErrFalse, "headers-00000-"},
	"a total difficulty": {func(f *forged) {
		f.claim(func(m map[string]any) { m["totalDifficulty"] = "12345" })
	}, snapshot.ErrFalse, "total difficulty of block 25"},
	"no number": {func(f *forged) {
		f.claim(func(m map[string]any) { m["totalDifficulty"] = strings.Repeat("9", 1000) })
	}, snapshot.ErrDamaged, "total difficulty"},
}

// falseBlocks are headers and blocks that are not those of the chain, with the right hashes in
// the manifest.
var falseBlocks = map[string]damage{
	"a header": {func(f *forged) {
		editRLP(f, "headers", func(h *types.Header) { h.GasUsed++ })
	}, snapshot.ErrFalse, "headers-00000-"},
	"a header and the hash of the state": {func(f *forged) {
		editRLP(f, "headers", func(h *types.Header) {
			h.GasUsed++
			f.claim(func(m map[string]any) { m["state"].(map[string]any)["hash"] = h.Hash() })
		})
	}, snapshot.ErrFalse, "headers-00000-"},
	"a header is missing": {func(f *forged) {
		f.edit("headers", 0, func(raw []byte) []byte {
			length, size := binary.Uvarint(raw)
			return raw[size+int(length):]
		})
	}, snapshot.ErrDamaged, "headers-00000-"},
	"blocks are missing": {func(f *forged) {
		f.claim(func(m map[string]any) {
			chunks := m["chunks"].(map[string]any)
			chunks["blocks"] = f.chunks("blocks")[:1]
		})
	}, snapshot.ErrDamaged, "is missing"},
	"a receipt": {func(f *forged) {
		editRLP(f, "blocks", func(b *blockRecord) { b.Receipts[0].CumulativeGasUsed++ })
	}, nil, "block 25"},
	"a transaction of a body": {func(f *forged) {
		editRLP(f, "bodies", func(b *types.Body) { b.Transactions = b.Transactions[1:] })
	}, nil, "block 26"},
	"no body": {func(f *forged) {
		f.claim(func(m map[string]any) { m["chunks"].(map[string]any)["bodies"] = f.chunks("bodies")[:1] })
	}, snapshot.ErrDamaged, "body of block"},
}

// falseStates are accounts, slots and code that are not those of the state, likewise.
var falseStates = map[string]damage{
	"an account's nonce": {func(f *forged) {
		f.edit("accounts", 0, func(raw []byte) []byte {
			raw[32+1+1]++ // after the address, the length and the head of the list
			return raw
		})
	}, ingest.ErrOtherState, "the accounts have the root"},
	"a slot": {func(f *forged) {
		f.edit("slots", 0, func(raw []byte) []byte {
			raw[33+33] ^= 0x40 // after the record of the account, size and key
			return raw
		})
	}, ingest.ErrOtherState, "the slots of account"},
	"no slots of an account": {func(f *forged) {
		f.edit("slots", 0, func(raw []byte) []byte { raw[1]++; return raw })
	}, snapshot.ErrDamaged, "slots-00000-"},
	"slots end early": {func(f *forged) {
		f.claim(func(m map[string]any) { m["chunks"].(map[string]any)["slots"] = f.chunks("slots")[:1] })
	}, nil, "account"},
	"accounts end early": {func(f *forged) {
		f.claim(func(m map[string]any) { m["chunks"].(map[string]any)["accounts"] = f.chunks("accounts")[:1] })
	}, ingest.ErrOtherState, "the accounts have the root"},
	"a code": {func(f *forged) {
		changed := false
		for i := range f.chunks("accounts") {
			f.edit("accounts", i, func(raw []byte) []byte {
				if at := bytes.Index(raw, []byte{0x60, 0x80, 0x60, 0x40}); at >= 0 && !changed {
					raw[at+1], changed = 0x81, true
				}
				return raw
			})
		}
		if !changed {
			f.t.Fatal("no code was found")
		}
	}, snapshot.ErrDamaged, "code 0x"},
	"a length that is too large": {func(f *forged) {
		f.edit("accounts", 0, func(raw []byte) []byte {
			return append(append(raw[:32:32], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01), raw[33:]...)
		})
	}, snapshot.ErrDamaged, "cut short"},
	"a record cut short": {func(f *forged) {
		f.edit("slots", 1, func(raw []byte) []byte { return raw[:len(raw)-1] })
	}, snapshot.ErrDamaged, "slots-00001-"},
}

// TestDamaged: damaged files and false claims are refused with the place. Where nothing
// that is stored can be wrong, the right snapshot can be loaded afterwards.
func TestDamaged(t *testing.T) {
	raced.Skip(t)
	m := newMaker(t)
	good := m.made(headNumber, startNumber)
	files := contents(t, good)
	for _, all := range []map[string]damage{damagedFiles, falseManifests, falseBlocks, falseStates} {
		for name, d := range all {
			t.Run(name, func(t *testing.T) {
				m.t = t
				d.check(t, m, files, good)
			})
		}
	}
}

// check loads a damaged copy of a good snapshot. If nothing was stored for good, the good one can
// be loaded into the same store afterwards, unless a part of another state is there.
func (d damage) check(t *testing.T, m *maker, files map[string]string, good string) {
	t.Helper()
	f := newForged(t, files)
	d.do(f)
	store := ingesttest.Store(t)
	_, err := m.load(t.Context(), store, f.folder, headNumber)
	if err == nil || d.kind != nil && !errors.Is(err, d.kind) || !strings.Contains(err.Error(), d.place) {
		t.Fatalf("%v\nwant %v with %q", err, d.kind, d.place)
	}
	t.Log(err)
	if settled, ok, err := rows.Settled(t.Context(), store); err != nil || ok && settled.Number < startNumber {
		t.Errorf("settled block %s, %v", settled, err)
	} else if errors.Is(d.kind, ingest.ErrOtherState) || d.kind == nil || ok {
		return
	}
	a, err := m.load(t.Context(), store, good, headNumber)
	if errors.Is(err, archive.ErrStarting) && f.state() != newForged(t, files).state() {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if settled, _ := a.Settled(); settled.Number != headNumber || settled.Hash != m.hash(headNumber) {
		t.Errorf("then loaded up to %s", settled)
	}
}
