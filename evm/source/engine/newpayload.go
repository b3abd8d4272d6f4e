package engine

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/params"
)

// payloadVersion is a version of engine_newPayload.
type payloadVersion struct {
	name               string
	withdrawals        bool // the payload has withdrawals,
	withdrawalsMayLack bool // from Shanghai on
	blobs              bool // it has fields of blobs, and comes with their hashes and a beacon root
	requests           bool // it comes with requests
	accessList         bool // it has an access list and a slot number
	forks              string
	covers             func(fork) bool
}

func payloadVersions() []payloadVersion {
	return []payloadVersion{
		{name: "V1", forks: "Paris", covers: func(f fork) bool { return !f.shanghai }},
		{name: "V2", withdrawals: true, withdrawalsMayLack: true, forks: "Paris and Shanghai", covers: func(f fork) bool { return !f.cancun }},
		{name: "V3", withdrawals: true, blobs: true, forks: "Cancun", covers: func(f fork) bool { return f.cancun && !f.prague }},
		{name: "V4", withdrawals: true, blobs: true, requests: true, forks: "Prague and Osaka", covers: func(f fork) bool { return f.prague && !f.amsterdam }},
		{name: "V5", withdrawals: true, blobs: true, requests: true, accessList: true, forks: "Amsterdam", covers: func(f fork) bool { return f.amsterdam && !f.bogota }},
	}
}

// arguments is the number of the method's parameters.
func (v payloadVersion) arguments() int {
	switch {
	case v.requests:
		return 4
	case v.blobs:
		return 3
	}
	return 1
}

// fork says which forks are active.
type fork struct{ shanghai, cancun, prague, osaka, amsterdam, bogota bool }

// forkAt returns the forks that are active at a time. London is always active.
func forkAt(rules *params.ChainConfig, time uint64) fork {
	london := rules.LondonBlock
	if london == nil {
		london = new(big.Int)
	}
	return fork{
		shanghai: rules.IsShanghai(london, time), cancun: rules.IsCancun(london, time),
		prague: rules.IsPrague(london, time), osaka: rules.IsOsaka(london, time),
		amsterdam: rules.IsAmsterdam(london, time), bogota: rules.IsBogota(london, time),
	}
}

// newPayload answers a version of engine_newPayload.
func (a *API) newPayload(v payloadVersion) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		a.record(func(h *LastCalls) { h.Payload = a.config.Now() })
		status, err := a.checkPayload(ctx, v, params)
		if err != nil {
			return out, err
		}
		a.count(a.answers.Payloads, status.Verdict)
		return appendStatus(out, status), nil
	}
}

func (a *API) checkPayload(ctx context.Context, v payloadVersion, params []byte) (Status, error) {
	var all [4][]byte
	args := all[:v.arguments()]
	if err := jsonrpc.Arguments(params, args, len(args)); err != nil {
		return Status{}, err
	}
	p, err := readPayload(args[0], v)
	if err != nil {
		return Status{}, invalidParams(err.Error())
	}
	beside, err := readSurroundings(v, args[1:])
	if err != nil {
		return Status{}, invalidParams(err.Error())
	}
	at := forkAt(a.config.Rules, p.header.Time)
	if !v.covers(at) {
		return Status{}, unsupportedFork(fmt.Sprintf("engine_newPayload%s is for blocks of %s, the payload's time is %d", v.name, v.forks, p.header.Time))
	}
	if v.withdrawalsMayLack && at.shanghai != (p.withdrawals != nil) {
		return Status{}, invalidParams("executionPayload.withdrawals: expected from Shanghai on, and not before")
	}
	block, err := p.block(beside)
	if err != nil {
		return malformed(v, err), nil
	}
	return a.config.Chain.NewPayload(ctx, block)
}

// malformed is the status of a payload that cannot be made into a block.
func malformed(v payloadVersion, why error) Status {
	verdict := Invalid
	var hash *hashError
	if v.name == "V1" && errors.As(why, &hash) {
		verdict = InvalidBlockHash
	}
	return Status{Verdict: verdict, Why: why.Error()}
}

// readSurroundings reads the arguments after the payload.
func readSurroundings(v payloadVersion, args [][]byte) (beside surroundings, err error) {
	if !v.blobs {
		return beside, nil
	}
	if beside.blobHashes, err = hashes(args[0]); err != nil {
		return beside, fmt.Errorf("expectedBlobVersionedHashes: %w", err)
	}
	beside.beaconRoot = new(common.Hash)
	if err := into(beside.beaconRoot[:])(args[1]); err != nil {
		return beside, fmt.Errorf("parentBeaconBlockRoot: %w", err)
	}
	if v.requests {
		if beside.requests, err = readRequests(args[2]); err != nil {
			return beside, fmt.Errorf("executionRequests: %w", err)
		}
	}
	return beside, nil
}

// readRequests reads the requests of a block (EIP-7685): none is empty, and their types
// ascend.
func readRequests(raw []byte) ([][]byte, error) {
	requests := [][]byte{} // not nil: no requests is not the same as no list
	err := readArray(raw, func(i int, raw []byte) error {
		request, err := bytesOf(raw)
		switch {
		case err != nil:
			return err
		case len(request) < 2:
			return errors.New("expected a type and data after it")
		case i > 0 && request[0] <= requests[i-1][0]:
			return fmt.Errorf("type %d after type %d, expected ascending types", request[0], requests[i-1][0])
		}
		requests = append(requests, request)
		return nil
	})
	return requests, err
}

// appendStatus appends a PayloadStatusV1.
func appendStatus(out []byte, s Status) []byte {
	out = jsonrpc.AppendString(append(out, `{"status":`...), string(s.Verdict))
	out = append(out, `,"latestValidHash":`...)
	if s.LatestValid == nil {
		out = append(out, "null"...)
	} else {
		out = jsonrpc.AppendString(out, s.LatestValid.Hex())
	}
	out = append(out, `,"validationError":`...)
	if s.Why == "" {
		return append(out, "null}"...)
	}
	return append(jsonrpc.AppendString(out, s.Why), '}')
}
