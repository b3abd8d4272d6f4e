package parameter_test

import (
	"cmp"
	"testing"

	"ashlar/parameter"
)

// TestAllocations: parameters of a fixed size are decoded without memory from the heap. It is in
// another package, as callers are, because that decides what the compiler knows.
func TestAllocations(t *testing.T) {
	const address, hash = `"0x7dcd17433742f4c0ca53122ab541d0ba67fc27df"`, `"0xa38f2a6f7d276298d8e7a9bfa28625e4dc8948021f5a7369d0a04571879e98d2"`
	for params, decode := range map[string]func(raw []byte) error{
		`[` + address + `,"latest"]`: func(raw []byte) error {
			args := parameter.Read(raw, 2, 2)
			args.Address(0)
			args.BlockNumber(1)
			return args.Err
		},
		`[` + hash + `,false]`: func(raw []byte) error {
			args := parameter.Read(raw, 2, 2)
			args.Hash(0)
			args.Bool(1)
			return args.Err
		},
		`["0x1","0x10",{"blockNumber":"0x1"}]`: func(raw []byte) error {
			args := parameter.Read(raw, 3, 2)
			_, malformed := args.StorageKey(0)
			args.Uint64(1)
			return cmp.Or(args.Err, malformed)
		},
	} {
		raw := []byte(params)
		if err := decode(raw); err != nil {
			t.Errorf("%s: %v", params, err)
		}
		if n := testing.AllocsPerRun(100, func() { _ = decode(raw) }); n > 0 {
			t.Errorf("%s: %v allocations, want none", params, n)
		}
	}
}
