package network

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// A network that has no head yet may have one soon, whatever the reason is: another Ashlar in front asks another node.
func TestMeaningOfNoHead(t *testing.T) {
	for _, why := range []string{"no node has answered", "HTTP status 502", (&upstream.AsideError{Until: time.Now().Add(time.Minute)}).Error()} {
		var sent *jsonrpc.Error
		if err := noHead(why); !errors.As(err, &sent) || upstream.Meaning(&upstream.NodeError{Code: sent.Code, Message: sent.Message}) != upstream.MeansFailure || !strings.HasSuffix(sent.Message, ": try again later") {
			t.Errorf("%v does not mean a failure, or does not say when to try again", err)
		}
	}
}
