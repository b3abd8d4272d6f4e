package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/core/types"
)

// grace is how much longer than its limit a trace may take before the worker ends: scripts
// stop by themselves, except in the middle of some built-in functions.
const grace = 200 * time.Millisecond

// Serve is the work of a worker: it does jobs until in ends. It returns in the middle of a
// job that cannot be ended otherwise; the process must end then.
func Serve(in io.Reader, out io.Writer) error {
	s := &server{
		wire: newWire(in, out), jobs: make(chan []byte), replies: make(chan []byte), ended: make(chan error, 1),
		deadline: newDeadline(), executors: make(map[string]*execute.Executor),
	}
	go s.listen()
	go s.work()
	for {
		select {
		case err := <-s.ended:
			if errors.Is(err, io.EOF) {
				return nil // the server needs the worker no longer
			}
			return err
		case <-s.deadline.timer.C:
			if s.deadline.pass() {
				return s.send(endedMessage, []byte(trace.ErrTime.Error()))
			}
		}
	}
}

// server does jobs, one at a time.
type server struct {
	*wire
	jobs    chan []byte
	replies chan []byte
	ended   chan error // has the reason why the worker ends

	deadline  *deadline                    // of the trace that is made
	executors map[string]*execute.Executor // by the configuration of their chain
}

// listen receives jobs, and replies to reads.
func (s *server) listen() {
	for {
		k, length, err := s.next()
		var contents []byte
		if err == nil {
			contents, err = s.receive(nil, length)
		}
		if err != nil {
			s.ended <- err
			return
		}
		if k == jobMessage {
			s.jobs <- contents
		} else {
			s.replies <- contents
		}
	}
}

// work does jobs until one cannot be answered.
func (s *server) work() {
	for text := range s.jobs {
		err := s.do(text)
		if errors.Is(err, errOverdue) {
			return
		}
		if err := s.answer(err); err != nil {
			s.ended <- err
			return
		}
	}
}

// answer sends how a job has ended.
func (s *server) answer(err error) error {
	var call *execute.CallError
	var panicked *panicked
	switch {
	case err == nil:
		return s.send(doneMessage)
	case errors.As(err, &call):
		return s.send(callMessage, []byte(call.Error()))
	case errors.As(err, &panicked):
		return s.send(endedMessage, []byte(panicked.Error()))
	}
	return s.send(errorMessage, []byte(err.Error()))
}

// panicked is a panic of the JavaScript engine.
type panicked struct{ value any }

func (p *panicked) Error() string { return fmt.Sprintf("tracer failed: %v", p.value) }

// do does a job. A panic of the JavaScript engine is an error of its script.
func (s *server) do(text []byte) (err error) {
	defer func() {
		if failed := recover(); failed != nil {
			err = &panicked{failed}
		}
		if overdue := s.deadline.end(); overdue != nil {
			err = overdue
		}
	}()
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return fmt.Errorf("decode job: %w", err)
	}
	executor, err := s.executor(&j)
	if err != nil {
		return err
	}
	executor.LimitCallGas(j.CallGas)
	config, err := trace.ParseConfig(j.Config, executor.Config())
	if err != nil {
		return err
	}
	config.AllowScripts()
	t := &tracing{server: s, job: &j, config: config, executor: executor}
	if j.Block != nil {
		return t.block()
	}
	return t.call()
}

// maxExecutors is how many executors are kept.
const maxExecutors = 16

// executor returns the executor of a job's chain.
func (s *server) executor(j *job) (*execute.Executor, error) {
	if e := s.executors[string(j.Chain)]; e != nil {
		return e, nil
	}
	config, err := j.chainConfig()
	if err != nil {
		return nil, err
	}
	e, err := execute.New(config)
	if err != nil {
		return nil, err
	}
	if len(s.executors) >= maxExecutors {
		clear(s.executors)
	}
	s.executors[string(j.Chain)] = e
	return e, nil
}

// result ends the time of a trace, and sends it, or why there is none. Other errors end the job.
func (s *server) result(traced []byte, err error) error {
	if overdue := s.deadline.end(); overdue != nil {
		return overdue
	}
	var failed *trace.Error
	switch {
	case errors.As(err, &failed):
		return s.send(failedMessage, []byte(failed.Error()))
	case err != nil:
		return err
	}
	return s.send(traceMessage, traced)
}

// tracing does one job.
type tracing struct {
	*server
	job      *job
	config   *trace.Config
	executor *execute.Executor
}

// begin starts the time of a trace.
func (t *tracing) begin() { t.deadline.begin(max(t.config.Time(), 0) + grace) }

// block traces transactions of a block, or a call between them.
func (t *tracing) block() error {
	block, parent := new(types.Block), new(types.Header)
	if err := errors.Join(t.job.Block.into(block), t.job.Parent.into(parent)); err != nil {
		return fmt.Errorf("decode block: %w", err)
	}
	remote := &remote{server: t.server}
	on := execute.Parent{Header: parent, State: remote, Ancestors: remote}
	ctx := context.Background() // the server ends the worker with the request
	options := execute.ReplayOptions{Senders: t.job.Senders}
	if t.job.Stored {
		options.Stored = remote
	}
	return t.executor.Replay(ctx, on, execute.Decoded(block), options, func(r *execute.Replay) error {
		if err := r.Skip(t.job.First); err != nil {
			return err
		}
		if t.job.Message != nil {
			return t.traceCall(ctx, func(ctx context.Context, tracer execute.Tracer) error {
				return r.TraceCall(ctx, t.job.Message, t.job.CallOptions, tracer)
			})
		}
		for i := t.job.First; i < t.job.End; i++ {
			t.begin()
			traced, err := t.config.AppendTransaction(ctx, r, nil, unbounded{})
			if err := t.result(traced, err); err != nil {
				return err
			}
			if err := r.Skip(i + 1); err != nil {
				return err
			}
		}
		return nil
	})
}

// call traces a call after a block.
func (t *tracing) call() error {
	header := new(types.Header)
	if err := t.job.Header.into(header); err != nil {
		return fmt.Errorf("decode header: %w", err)
	}
	remote := &remote{server: t.server}
	at := execute.At{Header: header, State: remote, Hashes: remote}
	return t.traceCall(context.Background(), func(ctx context.Context, tracer execute.Tracer) error {
		return t.executor.TraceCall(ctx, at, t.job.Message, t.job.CallOptions, tracer)
	})
}

func (t *tracing) traceCall(ctx context.Context, call func(context.Context, execute.Tracer) error) error {
	t.begin()
	traced, err := t.config.AppendCall(ctx, nil, unbounded{}, call)
	return t.result(traced, err)
}

// unbounded is the room of traces in a worker, whose memory is bounded as a whole.
type unbounded struct{}

// Check implements [trace.Room].
func (unbounded) Check(int) error { return nil }
