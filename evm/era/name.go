package era

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The profiles of ERE files, which say what a file leaves out. A file's name lists
// them in this order.
const (
	NoProofs   = "noproofs"
	NoReceipts = "noreceipts"
)

// Name is what the name of a history file says:
//
//	<network>-<number of the era>-<begin of the ID>[-<profile>]*.<era1|ere>
type Name struct {
	Network  string
	Era      uint64  // the first block's number divided by MaxBlocks
	ID       [4]byte // the first bytes of [Reader.ID]
	Profiles []string
	Format   Format
}

func (n Name) String() string {
	name := fmt.Sprintf("%s-%05d-%x", n.Network, n.Era, n.ID)
	for _, profile := range n.Profiles {
		name += "-" + profile
	}
	return name + n.Format.Extension()
}

// IsName reports whether a file's name ends as those of history files do.
func IsName(path string) bool {
	extension := filepath.Ext(path)
	return extension == Era1.Extension() || extension == ERE.Extension()
}

// ParseName takes the name of a file apart, and returns false for one that does not
// have the form that the specification gives.
func ParseName(path string) (n Name, ok bool) {
	if !IsName(path) {
		return n, false
	}
	if filepath.Ext(path) == ERE.Extension() {
		n.Format = ERE
	}
	parts := strings.Split(strings.TrimSuffix(filepath.Base(path), n.Format.Extension()), "-")
	for last := len(parts) - 1; last > 0 && n.Format == ERE && (parts[last] == NoProofs || parts[last] == NoReceipts); last-- {
		n.Profiles = slices.Insert(n.Profiles, 0, parts[last])
		parts = parts[:last]
	}
	if len(parts) < 3 {
		return n, false
	}
	number, id := parts[len(parts)-2], parts[len(parts)-1]
	n.Network = strings.Join(parts[:len(parts)-2], "-") // a network's name may have a hyphen
	era, err := strconv.ParseUint(number, 10, 64)
	if err != nil || len(number) < 5 {
		return n, false
	}
	n.Era = era
	decoded, err := hex.DecodeString(id)
	if err != nil || len(decoded) != len(n.ID) {
		return n, false
	}
	copy(n.ID[:], decoded)
	return n, true
}

// Check compares a file's name with its content. A file whose name says nothing, and
// one of an unaligned export, which begins within its era, are in order.
func (r *Reader) Check(path string) error {
	n, ok := ParseName(path)
	if !ok {
		return nil
	}
	if n.Format != r.format {
		return fmt.Errorf("the name ends with %s; the content is that of %s", n.Format.Extension(), r.format.Extension())
	}
	if first := r.Range().First; first/MaxBlocks != n.Era {
		return fmt.Errorf("the name says era %d; the first block is %d, of era %d", n.Era, first, first/MaxBlocks)
	}
	if id := r.ID(); [4]byte(id[:4]) != n.ID {
		return fmt.Errorf("the name says %x; the content gives %x", n.ID, id[:4])
	}
	if slices.Contains(n.Profiles, NoReceipts) == r.HasReceipts() {
		return fmt.Errorf("the name says receipts: %t; the file has them: %t", !r.HasReceipts(), r.HasReceipts())
	}
	return nil
}
