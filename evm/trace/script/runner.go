// Package script traces with clients' JavaScript, in workers.
//
// The JavaScript engine runs its built-in functions to their end, and its memory cannot be
// bounded, so a script could take the memory of the server or its processors for good. In
// a worker it can do neither. The worker runs the whole EVM and asks the server for what
// it reads of the state: a message each takes about 10 µs, and there are far fewer reads
// than instructions that a script would have to be shown otherwise.
//
//	server                       worker
//	job: block, transactions ->
//	                         <-  read account
//	account                  ->
//	                         <-  trace of a transaction
//	                         <-  done
package script

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"syscall"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/worker"

	"github.com/ethereum/go-ethereum/common"
)

// Question is what is traced: transactions of a block, or a call.
type Question struct {
	Config   *trace.Config
	Executor *execute.Executor // of the chain

	// Block and Parent are set for transactions, and for a call between them. First is the
	// transaction that a call precedes.
	Block      execute.Block
	Parent     execute.Parent
	Options    execute.ReplayOptions
	First, End int // transactions

	// Message is the call. Without a block it runs at At.
	Message     *execute.Message
	CallOptions execute.CallOptions
	At          execute.At
}

// Traces are the answer to a question, made one after the other. They belong to one
// goroutine.
type Traces struct {
	*wire
	ctx      context.Context
	question *Question
	room     trace.Room
	contents []byte                // of the last message that is not a trace
	changes  execute.StoredChanges // of the block, once the worker has asked for them; nil: not stored
	over     bool                  // no more messages follow
}

// Run asks a worker of the pool a question, for a caller, and gives the traces to use,
// which must append all of them or return an error.
func Run(ctx context.Context, pool *worker.Pool, caller string, q *Question, room trace.Room, use func(*Traces) error) error {
	text, err := q.encode()
	if err != nil {
		return err
	}
	var result error // of the question; the worker is ready for the next one then
	err = pool.Do(ctx, caller, func(w io.ReadWriter) error {
		t := &Traces{wire: newWire(w, w), ctx: ctx, question: q, room: room}
		if err := t.send(jobMessage, text); err != nil {
			return err
		}
		result = use(t)
		if t.over {
			return nil
		}
		if failed := (*Failed)(nil); result != nil && !errors.As(result, &failed) {
			return result
		}
		k, _, err := t.await()
		if err == nil && k != doneMessage {
			err = fmt.Errorf("worker sent message %q after its last trace", k)
		}
		return err
	})
	switch {
	case errors.Is(err, worker.ErrMemory):
		return &trace.Error{Err: fmt.Errorf("execution aborted (memory limit of %d MiB)", worker.Memory>>20)}
	case errors.Is(err, worker.ErrStack):
		return &trace.Error{Err: errors.New("execution aborted (stack limit)")}
	case err != nil:
		return err
	}
	return result
}

// Failed means that the script failed for one transaction. The traces of the others follow.
type Failed struct{ Reason *trace.Error }

func (f *Failed) Error() string { return f.Reason.Error() }
func (f *Failed) Unwrap() error { return f.Reason }

// Append appends the next trace to out. An error that is not a [*Failed] is the last.
func (t *Traces) Append(out []byte) ([]byte, error) {
	k, length, err := t.await()
	if err != nil {
		return out, err
	}
	switch k {
	case traceMessage:
		if err := t.room.Check(len(out) + length); err != nil {
			return out, err
		}
		return t.receive(out, length)
	case failedMessage:
		return out, &Failed{&trace.Error{Err: errors.New(string(t.contents))}}
	}
	return out, fmt.Errorf("worker sent message %q in place of a trace", k)
}

// await answers reads until another message comes. It receives the contents of all but
// traces.
func (t *Traces) await() (kind, int, error) {
	for {
		k, length, err := t.next()
		if err != nil || k == traceMessage {
			return k, length, err
		}
		if t.contents, err = t.receive(t.contents[:0], length); err != nil {
			return k, length, err
		}
		t.over = k == doneMessage || k == callMessage || k == errorMessage
		switch k {
		case failedMessage, doneMessage:
			return k, length, nil
		case endedMessage:
			return k, length, &trace.Error{Err: errors.New(string(t.contents))}
		case callMessage:
			return k, length, &execute.CallError{Err: errors.New(string(t.contents))}
		case errorMessage:
			return k, length, errors.New(string(t.contents))
		}
		reply, err := t.read(k, t.contents)
		if err == nil {
			err = t.send(replyMessage, reply)
		}
		if err != nil && !errors.Is(err, syscall.EPIPE) { // then the worker has ended, and may have said why
			return k, length, err
		}
	}
}

// state is what the question is about.
func (q *Question) state() evm.State {
	if q.Block != nil {
		return q.Parent.State
	}
	return q.At.State
}

// keyLengths are the lengths of what reads name; that of a node has a path in addition.
var keyLengths = map[kind]int{readAccount: 32, readSlot: 64, readCode: 32, readNode: 64, readHeader: 40, readBlockHash: 8, readAccessList: 0, readLogs: 8,
	readHasChanges: 0, readChangedAccount: stepBytes + 32, readChangedSlot: stepBytes + 64, readChangedCode: 32,
}

// nameLengths are the lengths of the names that may follow.
var nameLengths = map[kind]int{readAccount: common.AddressLength, readSlot: common.HashLength, readChangedAccount: common.AddressLength, readChangedSlot: common.HashLength}

// read reads what a worker asks for.
func (t *Traces) read(k kind, key []byte) ([]byte, error) {
	q := t.question
	if want, ok := keyLengths[k]; !ok || len(key) < want || len(key) > want && k != readNode && len(key) != want+nameLengths[k] {
		return nil, fmt.Errorf("worker sent message %q of %d bytes", k, len(key))
	}
	if k == readHeader && q.Block == nil || k == readBlockHash && q.Block != nil || (k == readAccessList || k == readLogs || k.ofChanges()) && q.Options.Stored == nil {
		return nil, fmt.Errorf("worker sent message %q, which its job has no use for", k)
	}
	if k.ofChanges() {
		return t.readChanges(k, key)
	}
	switch k {
	case readAccount:
		if name := key[32:]; len(name) > 0 {
			evm.AccountKey(q.state(), common.Address(name))
		}
		account, err := q.state().Account(t.ctx, common.Hash(key[:32]))
		if account == nil || err != nil {
			return nil, err
		}
		return encode(account)
	case readSlot:
		if name := key[64:]; len(name) > 0 {
			evm.SlotKey(q.state(), common.Hash(name))
		}
		value, err := q.state().Slot(t.ctx, common.Hash(key[:32]), common.Hash(key[32:64]))
		return value[:], err
	case readCode:
		return q.state().Code(t.ctx, common.Hash(key))
	case readNode:
		return q.state().Node(t.ctx, common.Hash(key[:32]), key[64:], common.Hash(key[32:64]))
	case readHeader:
		header, err := q.Parent.Ancestors.Header(t.ctx, common.Hash(key[:32]), binary.BigEndian.Uint64(key[32:]))
		if header == nil || err != nil {
			return nil, err
		}
		return encode(header)
	case readAccessList:
		return q.Options.Stored.AccessList(t.ctx)
	case readLogs:
		logs, err := q.Options.Stored.LogsBefore(t.ctx, int(binary.BigEndian.Uint64(key)))
		return binary.BigEndian.AppendUint64(nil, logs), err
	default:
		hash, err := q.At.Hashes.BlockHash(t.ctx, binary.BigEndian.Uint64(key))
		return hash[:], err
	}
}
