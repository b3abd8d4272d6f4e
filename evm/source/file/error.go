package file

import "fmt"

// Error says what is wrong with a file of blocks, and where.
type Error struct {
	Path     string
	Offset   int64 // of the faulty item, in bytes from the beginning
	Unzipped bool  // Offset counts bytes after decompression
	Block    int   // blocks of the file before the fault
	Err      error // what was found and what was expected
}

func (e *Error) Error() string {
	place := "byte"
	if e.Unzipped {
		place = "unzipped byte"
	}
	return fmt.Sprintf("chain file %s: at %s %d, after %d whole blocks: %v", e.Path, place, e.Offset, e.Block, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }
