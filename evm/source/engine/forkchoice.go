package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// attributesVersion is a version of engine_forkchoiceUpdated. Versions differ in the
// attributes of the block to build.
type attributesVersion struct {
	name               string
	withdrawals        bool // the attributes have withdrawals,
	withdrawalsMayLack bool // from Shanghai on
	beaconRoot         bool
	slotNumber         bool // and a target gas limit; the call may name custody columns
	forks              string
	covers             func(fork) bool
}

func attributesVersions() []attributesVersion {
	return []attributesVersion{
		{name: "V1", forks: "Paris", covers: func(f fork) bool { return !f.shanghai }},
		{name: "V2", withdrawals: true, withdrawalsMayLack: true, forks: "Paris and Shanghai", covers: func(f fork) bool { return !f.cancun }},
		{name: "V3", withdrawals: true, beaconRoot: true, forks: "Cancun to Osaka", covers: func(f fork) bool { return f.cancun && !f.amsterdam }},
		{name: "V4", withdrawals: true, beaconRoot: true, slotNumber: true, forks: "Amsterdam", covers: func(f fork) bool { return f.amsterdam && !f.bogota }},
	}
}

// forkchoiceUpdated answers engine_forkchoiceUpdated in a version.
func (a *API) forkchoiceUpdated(v attributesVersion) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		a.record(func(h *LastCalls) { h.Forkchoice = a.config.Now() })
		var all [3][]byte
		args := all[:2]
		if v.slotNumber {
			args = all[:]
		}
		if err := jsonrpc.Arguments(params, args, 1); err != nil {
			return out, err
		}
		if err := checkCustody(all[2]); err != nil {
			return out, invalidParams(err.Error())
		}
		to, err := readForkchoice(args[0])
		if err != nil {
			return out, invalidParams(err.Error())
		}
		status, err := a.config.Chain.UpdateForkchoice(ctx, to)
		switch {
		case errors.Is(err, ErrInconsistent):
			return out, fault(codeForkchoiceState, "Invalid forkchoice state", err.Error())
		case errors.Is(err, ErrTooDeep):
			return out, fault(codeTooDeepReorg, "Too deep reorg", err.Error())
		case err != nil:
			return out, err
		}
		a.count(a.answers.Forkchoices, status.Verdict)
		// The head moves, whatever is wrong with the attributes.
		if args[1] != nil && status.Verdict == Valid {
			return out, a.refuseAttributes(v, args[1])
		}
		out = appendStatus(append(out, `{"payloadStatus":`...), status)
		return append(out, `,"payloadId":null}`...), nil
	}
}

// checkCustody checks the set of columns of blobs that the client keeps. Ashlar keeps no
// blobs, so it has no use for the set.
func checkCustody(raw []byte) error {
	if raw == nil {
		return nil
	}
	var columns [16]byte // a bit for each
	if err := into(columns[:])(raw); err != nil {
		return fmt.Errorf("custodyColumns: %w", err)
	}
	return nil
}

func readForkchoice(raw []byte) (to Forkchoice, err error) {
	return to, readObject(raw, "forkchoiceState", map[string]member{
		"headBlockHash": into(to.Head[:]), "safeBlockHash": into(to.Safe[:]), "finalizedBlockHash": into(to.Finalized[:]),
	})
}

// refuseAttributes says why no block is built: because the attributes are wrong, or
// because Ashlar builds no blocks.
func (a *API) refuseAttributes(v attributesVersion, raw []byte) *jsonrpc.Error {
	var time uint64
	ignored := func([]byte) error { return nil }
	hash, address := new(common.Hash), new(common.Address)
	members := map[string]member{"timestamp": number(&time), "prevRandao": into(hash[:]), "suggestedFeeRecipient": into(address[:])}
	withdrawals := has(raw, "withdrawals")
	if v.withdrawals && (!v.withdrawalsMayLack || withdrawals) {
		maps.Copy(members, map[string]member{"withdrawals": ignored})
	}
	if v.beaconRoot {
		maps.Copy(members, map[string]member{"parentBeaconBlockRoot": into(hash[:])})
	}
	if v.slotNumber {
		var ignored uint64
		maps.Copy(members, map[string]member{"slotNumber": number(&ignored), "targetGasLimit": number(&ignored)})
	}
	if err := readObject(raw, "payloadAttributes", members); err != nil {
		return invalidAttributes(err.Error())
	}
	at := forkAt(a.config.Rules, time)
	if !v.covers(at) {
		return unsupportedFork(fmt.Sprintf("the attributes of engine_forkchoiceUpdated%s are for blocks of %s (their time is %d)", v.name, v.forks, time))
	}
	if v.withdrawalsMayLack && at.shanghai != withdrawals {
		return invalidAttributes("payloadAttributes.withdrawals: expected from Shanghai on, and not before")
	}
	a.warned.Do(func() {
		a.config.Log.Warn("the consensus client asks for a block to propose, which Ashlar does not build: its validators need another execution client")
	})
	return fault(codePayloadAttributes, attributesRefused+": "+notBuilt, notBuiltWhy)
}
