package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ashlar/internal/node"

	geth "github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
)

// driven is a service that is driven by a consensus client. It runs until the test ends.
type driven struct {
	service
	t       *testing.T
	process *node.Process
	client  *node.Client // of the service
	engine  *node.Client
}

// drive serves a network with a genesis. It follows source unless that is empty.
func drive(t *testing.T, genesis, source string) *driven {
	t.Helper()
	d := &driven{service: newService(t), t: t}
	d.Config = filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("networks:\n  %s:\n    genesis: %s\n    engine: {listen: '127.0.0.1:0'}\n", d.Network, genesis)
	if source != "" {
		text += "    source: " + source + "\n"
	}
	if err := os.WriteFile(d.Config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.start()
	t.Cleanup(func() {
		if err := d.process.Stop(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// start starts the process.
func (d *driven) start() {
	d.t.Helper()
	var err error
	if d.process, d.client, err = d.Serve(context.WithoutCancel(d.t.Context())); err != nil {
		d.t.Fatal(err)
	}
	if d.engine, err = d.process.Engine(d.t.Context(), filepath.Join(d.Data, "engine", d.Network+".jwt")); err != nil {
		d.t.Fatal(err)
	}
}

// kill kills the process and starts a new one.
func (d *driven) kill() {
	d.t.Helper()
	d.process.Kill()
	<-d.process.Done()
	d.start()
}

func (d *driven) send(c engineCall) geth.PayloadStatusV1 {
	d.t.Helper()
	var status geth.PayloadStatusV1
	if err := d.engine.Call(d.t.Context(), &status, c.Method, c.args()...); err != nil {
		d.t.Fatalf("%s: %v", c.ID, err)
	}
	return status
}

func (d *driven) update(head, safe, finalized common.Hash) geth.PayloadStatusV1 {
	d.t.Helper()
	return d.forkchoice("engine_forkchoiceUpdatedV3", geth.ForkchoiceStateV1{HeadBlockHash: head, SafeBlockHash: safe, FinalizedBlockHash: finalized}, nil)
}

func (d *driven) forkchoice(method string, params ...any) geth.PayloadStatusV1 {
	d.t.Helper()
	var answer geth.ForkChoiceResponse
	if err := d.engine.Call(d.t.Context(), &answer, method, params...); err != nil {
		d.t.Fatalf("%s: %v", method, err)
	}
	return answer.PayloadStatus
}
