package execute

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A call of BLAKE2F with all the gas there is ends when its client has left.
func TestBlakeIsInterrupted(t *testing.T) {
	blake := common.Address{19: 9}
	input := make([]byte, 4+8*8+16*8+2*8+1)           // the last byte, which may be 0, says whether it is the last block
	binary.BigEndian.PutUint32(input, math.MaxUint32) // rounds
	for name, options := range map[string]CallOptions{
		"plain":    {},
		"override": {State: StateOverrides{contract: {Nonce: new(uint64)}}},
	} {
		ctx, leave := context.WithCancel(t.Context())
		s := newCaller(t).newSimulation(ctx, newWorld().at())
		s.gasCap = 1 << 40
		ended := make(chan error, 1)
		go func() {
			ended <- s.do(options, func(s *simulation) error {
				msg, err := s.message(&Message{To: &blake, Data: input, Gas: &s.gasCap})
				if err == nil {
					_, err = s.run(msg, nil)
				}
				return err
			})
		}()
		select {
		case err := <-ended:
			t.Fatalf("%s: ended before the client left: %v", name, err)
		case <-time.After(100 * time.Millisecond):
		}
		leave()
		select {
		case err := <-ended:
			if !errors.Is(err, errAborted) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second): // without an interruption it takes half a minute or more
			t.Fatalf("%s: still running", name)
		}
	}
}
