package verify

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// codeName identifies a code by the first bytes of its hash.
type codeName uint64

func nameOfCode(hash []byte) codeName { return codeName(binary.BigEndian.Uint64(hash)) }

// codeUse tracks which codes are stored, and which of these are used by accounts.
type codeUse struct {
	mu      sync.Mutex
	used    map[codeName]bool   // guarded by mu; has an entry for each stored code
	missing audit.LowestFinding // about codes that are not stored
}

// checkCodes checks the hash of every stored code.
func (c *checker) checkCodes(ctx context.Context) error {
	there := make(map[codeName]bool)
	for row, err := range c.Walk(ctx, c.tables.Codes) {
		if err != nil {
			return err
		}
		if len(row.Partition) != common.HashLength || row.Sort != 0 {
			return c.Finding(c.tables.Codes, row.Partition, row.Sort, "a hash and the sort key 0", "another key")
		}
		if hash := crypto.Keccak256(row.Value); !bytes.Equal(hash, row.Partition) {
			return c.Finding(c.tables.Codes, row.Partition, 0, fmt.Sprintf("a code with the hash %#x", row.Partition), fmt.Sprintf("one with %#x", hash))
		}
		there[nameOfCode(row.Partition)] = false
	}
	c.codes.mu.Lock()
	defer c.codes.mu.Unlock()
	c.codes.used = there
	return nil
}

// useCode records that a version of an account uses a code. A finding about a missing code
// is held back until the account has been found to be right.
func (c *checker) useCode(hash common.Hash, v version) {
	name := nameOfCode(hash[:])
	c.codes.mu.Lock()
	used, there := c.codes.used[name]
	if there && !used {
		c.codes.used[name] = true
	}
	c.codes.mu.Unlock()
	if there {
		return
	}
	f := c.Finding(c.tables.Codes, hash[:], 0, "a row, as it is the code of "+archive.DescribeKey(c.tables.Accounts, v.partition, v.from), "none")
	f.Block = v.from
	c.codes.missing.Keep(f)
}

// checkCodesUsed reports codes that are used but not stored, and codes that are stored but
// used by no version of any account, except where writes are piecewise.
func (c *checker) checkCodesUsed(ctx context.Context) error {
	if err := c.codes.missing.Err(); err != nil {
		return err
	}
	if _, piecewise := c.Store.(kv.Piecewise); piecewise {
		return nil // a code does not name its block: it may be of one that is being written
	}
	if _, removed, err := c.archive.Removed(ctx); removed || err != nil {
		return err // older versions of accounts are removed, but not their codes
	}
	c.codes.mu.Lock()
	defer c.codes.mu.Unlock()
	unused := false
	for _, used := range c.codes.used {
		unused = unused || !used
	}
	if !unused {
		return nil
	}
	for row, err := range c.Walk(ctx, c.tables.Codes) {
		if err != nil {
			return err
		}
		if !c.codes.used[nameOfCode(row.Partition)] {
			return c.Finding(c.tables.Codes, row.Partition, 0, "no row, as no account has this code", fmt.Sprintf("a code of %d bytes", len(row.Value)))
		}
	}
	return nil
}
