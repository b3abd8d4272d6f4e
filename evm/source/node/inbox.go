package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/rpc"
)

// inbox holds the messages of a subscription that were received and not yet taken. go-ethereum's client
// holds up to 20,000 of any size, so an inbox takes them from it at once, and has a bound in bytes.
type inbox struct {
	most int           // bytes
	more chan struct{} // has an element after a message has been put

	mu       sync.Mutex
	messages []json.RawMessage // guarded by mu
	bytes    int               // of messages; guarded by mu
}

const (
	inboxBytes = 8 << 20
	// messageBytes is what a message takes besides its text, about.
	messageBytes = 64
)

func newInbox(most int) *inbox { return &inbox{most: most, more: make(chan struct{}, 1)} }

// receive puts messages until ctx is done, the subscription ends, or too much waits. It returns the reason.
func (i *inbox) receive(ctx context.Context, s *rpc.ClientSubscription, messages <-chan json.RawMessage) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.Err():
			return fmt.Errorf("the subscription ended: %w", errors.Join(err, errSubscription))
		case message := <-messages:
			if !i.put(message) {
				return fmt.Errorf("the node sends faster than its messages can be handled: more than %d bytes wait", i.most)
			}
		}
	}
}

// put returns false if there is no room. A single message always has room.
func (i *inbox) put(message json.RawMessage) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.bytes += len(message) + messageBytes; i.bytes > i.most && len(i.messages) > 0 {
		return false
	}
	i.messages = append(i.messages, message)
	select {
	case i.more <- struct{}{}:
	default:
	}
	return true
}

// take waits for the next message, until ctx is done; the error is its cause.
func (i *inbox) take(ctx context.Context) (json.RawMessage, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if message, ok := i.first(); ok {
			return message, nil
		}
		select {
		case <-ctx.Done():
		case <-i.more:
		}
	}
}

func (i *inbox) first() (json.RawMessage, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.messages) == 0 {
		return nil, false
	}
	message := i.messages[0]
	i.messages[0], i.messages = nil, i.messages[1:]
	i.bytes -= len(message) + messageBytes
	return message, true
}
