package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ashlar/evm/snapshot/origin"

	"github.com/klauspost/compress/zstd"
)

// chunkWriter writes the records of a kind to chunks. A record is appended to raw, before
// or after which next is called.
type chunkWriter struct {
	folder  string
	kind    Kind
	most    int // size at which a chunk ends
	encoder *zstd.Encoder
	raw     []byte // the chunk so far
	first   Chunk  // its first record
	chunks  []Chunk
	packed  []byte // scratch
}

// begins ends a chunk that is large enough, and reports whether the next record is the
// first of a chunk; then the caller sets first.
func (w *chunkWriter) begins() (bool, error) {
	if len(w.raw) >= w.most {
		if err := w.end(); err != nil {
			return false, err
		}
	}
	return len(w.raw) == 0, nil
}

// end writes the chunk, if it has a record.
func (w *chunkWriter) end() error {
	if len(w.raw) == 0 {
		return nil
	}
	w.packed = w.encoder.EncodeAll(w.raw, w.packed[:0])
	c := w.first
	c.SHA256, c.Bytes, c.Raw = sha256.Sum256(w.packed), int64(len(w.packed)), int64(len(w.raw))
	if err := checkChunks(w.kind, []Chunk{c}); err != nil {
		return err // a record is too large
	}
	name := c.name(w.kind, len(w.chunks))
	w.chunks, w.raw, w.first = append(w.chunks, c), w.raw[:0], Chunk{}
	return writeFile(w.folder, name, w.packed)
}

// unfinished is the suffix of a file that is being written.
const unfinished = ".unfinished"

// writeFile writes a file that is whole if it has its name.
func writeFile(folder, name string, content []byte) error {
	path := filepath.Join(folder, name)
	file, err := os.Create(path + unfinished)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+unfinished, path)
}

// newEncoder returns the encoder of chunks. Its output depends on its input alone.
func newEncoder() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false))
}

// readChunk returns the decompressed content of a chunk.
func readChunk(ctx context.Context, from *origin.Origin, kind Kind, index int, c *Chunk) ([]byte, error) {
	name := c.name(kind, index)
	packed, err := from.Get(ctx, name, c.Bytes, func(content []byte) error {
		if got := sha256.Sum256(content); got != c.SHA256 {
			return fmt.Errorf("%w: %d bytes with the SHA-256 %x (want %d bytes with %x)", ErrDamaged, len(content), got, c.Bytes, c.SHA256)
		}
		return nil
	})
	if errors.Is(err, origin.ErrTooLong) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	raw, err := decoder.DecodeAll(packed, make([]byte, 0, c.Raw))
	if err == nil && int64(len(raw)) != c.Raw {
		err = fmt.Errorf("%d bytes (want %d)", len(raw), c.Raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: decompress: %w", ErrDamaged, name, err)
	}
	return raw, nil
}

// cursor reads the records of a chunk.
type cursor struct {
	name string
	raw  []byte
	at   int
}

func (c *cursor) more() bool { return c.at < len(c.raw) }

// damaged returns an error that names the place.
func (c *cursor) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s, at byte %d: %w", ErrDamaged, c.name, c.at, fmt.Errorf(format, args...))
}

// take returns the next n bytes.
func (c *cursor) take(n uint64) ([]byte, error) {
	if n > uint64(len(c.raw)-c.at) {
		return nil, c.damaged("cut short: %d bytes are left (want %d)", len(c.raw)-c.at, n)
	}
	taken := c.raw[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return taken, nil
}

// field returns bytes that follow their length.
func (c *cursor) field() ([]byte, error) {
	n, size := binary.Uvarint(c.raw[c.at:])
	if size <= 0 {
		return nil, c.damaged("no length")
	}
	c.at += size
	return c.take(n)
}

// appendField appends bytes after their length.
func appendField(to, value []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(value))), value...)
}
