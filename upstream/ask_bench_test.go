package upstream

import (
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
)

// BenchmarkAsk measures calls to a node that only writes bytes, four at a time. All
// allocations, and most of the processor time, are those of the pool and of net/http.
func BenchmarkAsk(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	var answering sync.WaitGroup
	answering.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			answering.Go(func() { answerEach(conn) })
		}
	})
	p, err := New(Config{Nodes: Nodes{{URL: "http://" + listener.Addr().String()}}, ChainID: 7})
	if err != nil {
		b.Fatal(err)
	}
	n := p.nodes[0]
	n.known, n.chainID, n.head = true, 7, Head{Ref: chain.Ref{Number: 5, Hash: common.Hash{5}}}
	params := []json.RawMessage{[]byte(`["0x01","latest"]`), []byte(`["0x02","latest"]`), []byte(`["0x03","latest"]`), []byte(`["0x04","latest"]`)}
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(2) // for each of two processors
	b.RunParallel(func(pb *testing.PB) {
		own := params[int(next.Add(1))%len(params)]
		for pb.Next() {
			if _, err := p.Ask(b.Context(), Call{Method: "eth_getBalance", Params: own}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	n.to.http.CloseIdleConnections()
	listener.Close()
	answering.Wait()
}

// answerEach answers the requests of a connection, each of which comes in one piece.
func answerEach(conn net.Conn) {
	defer conn.Close()
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 39\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"result":"0x1"}`)
	request := make([]byte, 4096)
	for {
		if _, err := conn.Read(request); err != nil {
			return
		}
		if _, err := conn.Write(answer); err != nil {
			return
		}
	}
}
