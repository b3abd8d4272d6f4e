package tries_test

import (
	"bytes"
	"errors"
	"testing"

	"ashlar/evm"
	"ashlar/evm/execute/tries"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

var errNoMore = errors.New("no more nodes")

// listOf returns the RLP of a list of strings.
func listOf(items ...[]byte) []byte {
	encoded, err := rlp.EncodeToBytes(items)
	if err != nil {
		panic(err)
	}
	return encoded
}

// compact returns the hex-prefix encoding of an even number of nibbles, all zero.
func compact(flags byte, nibbles int) []byte {
	return append([]byte{flags}, make([]byte, nibbles/2)...)
}

const leafFlag, extensionFlag = 0x20, 0x00

// malformed are the first nodes of tries that nobody has, each in the order in which they are read.
func malformed() map[string][][]byte {
	hash, value := bytes.Repeat([]byte{7}, common.HashLength), []byte("a value of more than a few bytes")
	branch := listOf(append(append([][]byte{hash, hash}, make([][]byte, 14)...), nil)...)
	return map[string][][]byte{
		"a leaf with a long key":     {listOf(compact(leafFlag, evm.KeyNibbles+2), value)},
		"a leaf with a short key":    {listOf(compact(leafFlag, evm.KeyNibbles-2), value)},
		"an extension of a key":      {listOf(compact(extensionFlag, evm.KeyNibbles), hash), branch},
		"a long extension":           {listOf(compact(extensionFlag, evm.KeyNibbles+2), hash), branch},
		"an extension without a key": {listOf(compact(extensionFlag, 0), hash), branch},
		"branches below a key":       {listOf(compact(extensionFlag, evm.KeyNibbles-2), hash), branch, branch, branch},
		"a leaf below an extension":  {listOf(compact(extensionFlag, 2), hash), listOf(compact(leafFlag, evm.KeyNibbles-2), value)},
	}
}

// sourceOf returns a reader of nodes, whatever is asked for.
func sourceOf(nodes [][]byte) tries.Reader {
	return func(common.Hash, []byte, common.Hash) ([]byte, error) {
		if len(nodes) == 0 {
			return nil, errNoMore
		}
		first := nodes[0]
		nodes = nodes[1:]
		return first, nil
	}
}

// Nodes that no trie has lead to errors. Their hashes are right if somebody has made up the whole state.
func TestMalformedNodes(t *testing.T) {
	for name, nodes := range malformed() {
		t.Run(name, func(t *testing.T) {
			removed := tries.NewRoots(sourceOf(nodes), nil).Open(common.Hash{1}, common.Hash{2})
			err := removed.Remove(common.Hash{})
			if _, hashErr := removed.Hash(); err == nil || hashErr == nil || errors.Is(err, errNoMore) {
				t.Errorf("a key is removed: %v, %v", err, hashErr)
			}
			if name == "a leaf below an extension" {
				return // its value can be set
			}
			set := tries.NewRoots(sourceOf(nodes), nil).Open(common.Hash{1}, common.Hash{2})
			err = set.Put(common.Hash{}, []byte{1})
			if _, hashErr := set.Hash(); err == nil || hashErr == nil || errors.Is(err, errNoMore) {
				t.Errorf("a key is set: %v, %v", err, hashErr)
			}
		})
	}
}

// FuzzMalformedNodes sets and removes keys of tries with any nodes. Each byte of lengths is that of a
// node in data.
func FuzzMalformedNodes(f *testing.F) {
	for _, nodes := range malformed() {
		var lengths []byte
		for _, node := range nodes {
			lengths = append(lengths, byte(len(node)))
		}
		f.Add(lengths, bytes.Join(nodes, nil))
	}
	f.Fuzz(func(t *testing.T, lengths, data []byte) {
		var nodes [][]byte
		for _, length := range lengths {
			n := min(int(length), len(data))
			nodes, data = append(nodes, data[:n]), data[n:]
		}
		for first := range 2 {
			trie := tries.NewRoots(sourceOf(nodes), nil).Open(common.Hash{1}, common.Hash{2})
			for i, key := range []common.Hash{{}, {0x11}, {}, {31: 0x01}, {}} {
				if i%2 == first {
					_ = trie.Remove(key)
				} else {
					_ = trie.Put(key, []byte{byte(i + 1)})
				}
				if i == 2 {
					_, _ = trie.Hash()
				}
			}
			_, _ = trie.Hash()
		}
	})
}
