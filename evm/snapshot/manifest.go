// Package snapshot writes and reads snapshots of EVM networks: the state of a block and the
// blocks around it, as compressed files with hashes. docs/format.md draws them.
//
//	Create    archive -> files
//	Source    files -> the state and blocks with which an archive begins
//
// A snapshot is not trusted. A hash of a file tells whether it is the one that the manifest
// names; whether the manifest tells the truth follows from the hash of the head, which the
// operator knows.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

const (
	manifestName = "manifest.json"
	format       = "ashlar-evm-snapshot-1"

	chunkBytes = 8 << 20  // a chunk ends after the record that reaches this size
	maxChunk   = 32 << 20 // raw and compressed
	// ancestors is how many blocks before the one with state are part of a snapshot: those
	// whose hashes BLOCKHASH returns.
	ancestors = 256
	// maxManifest bounds the manifest: about 100,000 chunks.
	maxManifest = 32 << 20
	// maxDifficulty bounds the digits of the total difficulty.
	maxDifficulty = 78
)

// ErrDamaged means that a file of a snapshot is not the one that the manifest names, or
// that its contents make no sense.
var ErrDamaged = errors.New("the snapshot is damaged")

// ErrFalse means that a snapshot is of another block or chain than it should be.
var ErrFalse = errors.New("the snapshot is not the expected one")

// Kind is what the records of a chunk are.
type Kind string

// The kinds of chunks.
const (
	Headers  Kind = "headers"
	Accounts Kind = "accounts"
	Slots    Kind = "slots"
	Blocks   Kind = "blocks"
	Bodies   Kind = "bodies"
)

func kinds() []Kind { return []Kind{Headers, Accounts, Slots, Blocks, Bodies} }

// Manifest describes the chunks of a snapshot.
type Manifest struct {
	Format          string           `json:"format"`
	ChainID         string           `json:"chainId"`
	Genesis         common.Hash      `json:"genesis"`
	State           Block            `json:"state"`
	Head            Block            `json:"head"`
	TotalDifficulty string           `json:"totalDifficulty"`
	Accounts        uint64           `json:"accounts"`
	Slots           uint64           `json:"slots"`
	Chunks          map[Kind][]Chunk `json:"chunks"`
}

// Block is a number and a hash.
type Block struct {
	Number uint64      `json:"number"`
	Hash   common.Hash `json:"hash"`
}

func (b Block) ref() chain.Ref { return chain.Ref(b) }

// Chunk is a file of records.
type Chunk struct {
	SHA256  sum          `json:"sha256"`
	Bytes   int64        `json:"bytes"`
	Raw     int64        `json:"raw"`
	Block   *uint64      `json:"block,omitempty"`
	Account *common.Hash `json:"account,omitempty"`
}

// sum is a SHA-256.
type sum [sha256.Size]byte

// MarshalText implements [encoding.TextMarshaler].
func (s sum) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *sum) UnmarshalText(text []byte) error {
	if raw, err := hex.DecodeString(string(text)); err != nil || len(raw) != len(s) || bytes.ContainsAny(text, "ABCDEF") {
		return fmt.Errorf("hash %.70q (want 64 lower-case hexadecimal digits)", text)
	} else {
		*s = sum(raw)
	}
	return nil
}

// name returns the name of the index-th chunk of a kind. It follows from what the chunk is
// alone, so a manifest cannot make a loader read or write another file.
func (c *Chunk) name(kind Kind, index int) string {
	return fmt.Sprintf("%s-%05d-%x.zst", kind, index, c.SHA256[:8])
}

// Bytes returns the size of all chunks.
func (m *Manifest) Bytes() (all int64) {
	for _, chunks := range m.Chunks {
		for _, c := range chunks {
			all += c.Bytes
		}
	}
	return all
}

// parseManifest parses and checks a manifest.
func parseManifest(text []byte) (*Manifest, error) {
	m := new(Manifest)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if decoder.More() {
		return nil, fmt.Errorf("%w: something follows the object", ErrDamaged)
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return m, nil
}

func (m *Manifest) check() error {
	switch {
	case m.Format != format:
		return fmt.Errorf("unknown format %.100q (want %s)", m.Format, format)
	case m.State.Number == 0 || m.State.Number > m.Head.Number:
		return fmt.Errorf("the state is that of block %d, the head is block %d (want a state from 1 up to the head)", m.State.Number, m.Head.Number)
	}
	if _, err := m.totalDifficulty(); err != nil {
		return err
	}
	for kind, chunks := range m.Chunks {
		if err := checkChunks(kind, chunks); err != nil {
			return err
		}
	}
	for _, kind := range []Kind{Headers, Blocks} {
		if len(m.Chunks[kind]) == 0 {
			return fmt.Errorf("there are no %s", kind)
		}
	}
	if later := m.Head.Number > m.State.Number; later != (len(m.Chunks[Bodies]) > 0) {
		return fmt.Errorf("%d chunks of bodies for %d blocks after the state", len(m.Chunks[Bodies]), m.Head.Number-m.State.Number)
	}
	return nil
}

// checkChunks checks what the manifest says of the chunks of a kind.
func checkChunks(kind Kind, chunks []Chunk) error {
	byAccount := kind == Accounts || kind == Slots
	switch kind {
	case Headers, Accounts, Slots, Blocks, Bodies:
	default:
		return fmt.Errorf("unknown kind of chunks %.100q (want %v)", kind, kinds())
	}
	for i, c := range chunks {
		switch {
		case c.Bytes <= 0 || c.Bytes > maxChunk || c.Raw <= 0 || c.Raw > maxChunk:
			return fmt.Errorf("%s[%d]: %d bytes, %d decompressed (want from 1 to %d)", kind, i, c.Bytes, c.Raw, maxChunk)
		case byAccount != (c.Account != nil), byAccount == (c.Block != nil):
			return fmt.Errorf("%s[%d]: want the first account, or for other kinds the first block", kind, i)
		case byAccount && i > 0 && c.Account.Cmp(*chunks[i-1].Account) < 0,
			(kind == Headers || kind == Bodies) && i > 0 && *c.Block <= *chunks[i-1].Block:
			return fmt.Errorf("%s[%d]: its first record is not after that of the chunk before", kind, i)
		}
	}
	return nil
}

func (m *Manifest) totalDifficulty() (*big.Int, error) {
	total, ok := new(big.Int), len(m.TotalDifficulty) > 0 && len(m.TotalDifficulty) <= maxDifficulty
	if ok {
		total, ok = total.SetString(m.TotalDifficulty, 10)
	}
	if !ok || total.Sign() < 0 {
		return nil, fmt.Errorf("total difficulty %.100q (want a decimal number of at most %d digits)", m.TotalDifficulty, maxDifficulty)
	}
	return total, nil
}
