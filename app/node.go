package app

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"ashlar/app/config"
	"ashlar/kv"
)

// The processes that share a store of accounts have numbers, under which each writes the
// usage that it counted. A process keeps its number when it is started again, so that it
// adds up what it wrote before. The store has two kinds of pointers for that.
const (
	pointerNodes = "nodes" // the greatest number that was given, 2 bytes
	pointerNode  = "node " // followed by the name of a process: its number, 2 bytes
)

// nodeName returns the name of the process: its machine, and where it listens.
func nodeName(c *config.Config) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name of this machine: %w", err)
	}
	return host + " " + c.Listen, nil
}

// nodeNumber returns the number of the process with a name, and gives it one if it has none.
func nodeNumber(ctx context.Context, store kv.Store, name string) (uint16, error) {
	pointer := pointerNode + name
	for {
		number, err := readNode(ctx, store, pointer)
		if err != nil || number != 0 {
			return number, err
		}
		last, err := readNode(ctx, store, pointerNodes)
		if err != nil {
			return 0, err
		}
		if last == math.MaxUint16 {
			return 0, fmt.Errorf("%d processes with other names have used the accounts (want names of machines that stay the same)", last)
		}
		var before []byte
		if last > 0 {
			before = binary.BigEndian.AppendUint16(nil, last)
		}
		next := binary.BigEndian.AppendUint16(nil, last+1)
		if err = store.CompareAndSet(ctx, pointerNodes, before, next); err == nil {
			err = store.CompareAndSet(ctx, pointer, nil, next)
		}
		if err != nil && !errors.Is(err, kv.ErrConflict) { // a conflict: another process was first
			return 0, fmt.Errorf("number of this process: %w", err)
		}
	}
}

// readNode reads a number, 0 if there is none.
func readNode(ctx context.Context, store kv.Reader, pointer string) (uint16, error) {
	value, err := store.Pointer(ctx, pointer)
	if errors.Is(err, kv.ErrNotFound) {
		return 0, nil
	}
	if err == nil && len(value) != 2 {
		err = fmt.Errorf("pointer %q has %d bytes (want 2)", pointer, len(value))
	}
	if err != nil {
		return 0, fmt.Errorf("number of this process: %w", err)
	}
	return binary.BigEndian.Uint16(value), nil
}
