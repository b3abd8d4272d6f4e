package endpoint

import (
	"net/http"
	"time"
)

const (
	silence  = 5 * time.Second // of a connection over HTTP/2, after which it is tested
	pongTime = 5 * time.Second // for the answer
)

// Transport returns a transport for requests to a node. If a connection over HTTP/2 ends without a word, such as in a router that has
// forgotten it, requests on it fail within seconds. Without that net/http would send further ones on it until the kernel gives it up.
func Transport() *http.Transport { return transport(silence, pongTime) }

func transport(silence, pongTime time.Duration) *http.Transport {
	to := http.DefaultTransport.(*http.Transport).Clone()
	to.HTTP2 = &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: pongTime}
	return to
}
