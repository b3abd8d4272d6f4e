package script

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// A message is its kind, the length of its contents in four bytes, and its contents.
//
//	server -> worker    j job    r reply to a read
//	worker -> server    a, s, c, n, h, b, l, g, v, A, S, C reads    t trace    e, k, x, f errors    d done
type kind byte

const (
	jobMessage   kind = 'j' // JSON of a job
	replyMessage kind = 'r' // what was read

	readAccount   kind = 'a' // hash of the address, and the address if it is known; reply: RLP, or nothing
	readSlot      kind = 's' // hashes of the address and the slot, and the slot if it is known; reply: the value
	readCode      kind = 'c' // hash; reply: the code
	readNode      kind = 'n' // owner, hash, path; reply: the node
	readHeader    kind = 'h' // hash and number; reply: RLP, or nothing
	readBlockHash kind = 'b' // number; reply: hash

	readAccessList kind = 'l' // nothing; reply: RLP
	readLogs       kind = 'g' // index of a transaction; reply: number of logs before it

	readHasChanges     kind = 'v' // nothing; reply: 1 byte if changes are stored, else nothing
	readChangedAccount kind = 'A' // step, and what readAccount has; reply: the account after the step
	readChangedSlot    kind = 'S' // step, and what readSlot has; reply: the slot after the step
	readChangedCode    kind = 'C' // hash; reply: 1 byte and the code if accounts had it only within the block, else nothing

	traceMessage  kind = 't' // the trace of the next transaction, or of the call
	failedMessage kind = 'e' // why there is no trace of it; the next transaction follows
	endedMessage  kind = 'k' // why no more traces follow; the script is the reason
	callMessage   kind = 'x' // why the call was not run, in the words of execute
	errorMessage  kind = 'f' // why the job failed
	doneMessage   kind = 'd' // the job is done
)

// maxMessage bounds the messages that are accepted. No worker has memory for a longer one.
const maxMessage = 256 << 20

// wire sends and receives messages. One goroutine may receive while others send.
type wire struct {
	in  *bufio.Reader
	mu  sync.Mutex // for out and buffer
	out io.Writer
	buf []byte
}

func newWire(in io.Reader, out io.Writer) *wire {
	return &wire{in: bufio.NewReaderSize(in, 64<<10), out: out}
}

// send sends a message whose contents are the parts.
func (w *wire) send(k kind, parts ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], byte(k), 0, 0, 0, 0)
	for _, part := range parts {
		w.buf = append(w.buf, part...)
	}
	binary.BigEndian.PutUint32(w.buf[1:], uint32(len(w.buf)-5))
	_, err := w.out.Write(w.buf)
	return err
}

// next returns the kind and the length of the next message. Its contents must be received
// before the next call.
func (w *wire) next() (kind, int, error) {
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return 0, 0, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if length > maxMessage {
		return 0, 0, fmt.Errorf("message %q of %d bytes (want at most %d)", head[0], length, maxMessage)
	}
	return kind(head[0]), int(length), nil
}

// receive appends the contents of a message to out.
func (w *wire) receive(out []byte, length int) ([]byte, error) {
	start := len(out)
	out = append(out, make([]byte, length)...)
	_, err := io.ReadFull(w.in, out[start:])
	return out, err
}
