package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// attributesVersion is a version of engine_forkchoiceUpdated: they differ in what
// they say of a block to be built.
type attributesVersion struct {
	name               string
	withdrawals        bool // the attributes have withdrawals,
	withdrawalsMayLack bool // from Shanghai on
	beaconRoot         bool
	forks              string
	covers             func(fork) bool
}

func attributesVersions() []attributesVersion {
	return []attributesVersion{
		{name: "V1", forks: "Paris", covers: func(f fork) bool { return !f.shanghai }},
		{name: "V2", withdrawals: true, withdrawalsMayLack: true, forks: "Paris and Shanghai", covers: func(f fork) bool { return !f.cancun }},
		{name: "V3", withdrawals: true, beaconRoot: true, forks: "Cancun to Osaka", covers: func(f fork) bool { return f.cancun && !f.amsterdam }},
	}
}

// forkchoiceUpdated answers engine_forkchoiceUpdated in a version.
func (a *API) forkchoiceUpdated(v attributesVersion) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		a.hears(func(h *Heard) { h.Forkchoice = a.config.Now() })
		var args [2][]byte
		if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
			return out, err
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
		// The head is where it is told, whatever comes of the attributes.
		if args[1] != nil && status.Verdict == Valid {
			return out, a.refuseAttributes(v, args[1])
		}
		out = appendStatus(append(out, `{"payloadStatus":`...), status)
		return append(out, `,"payloadId":null}`...), nil
	}
}

func readForkchoice(raw []byte) (to Forkchoice, err error) {
	return to, readObject(raw, "forkchoiceState", map[string]member{
		"headBlockHash": into(to.Head[:]), "safeBlockHash": into(to.Safe[:]), "finalizedBlockHash": into(to.Finalized[:]),
	})
}

// refuseAttributes says why no block is built: for what is wrong with what is said
// of it, or because none ever is.
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
	if err := readObject(raw, "payloadAttributes", members); err != nil {
		return invalidAttributes(err.Error())
	}
	at := forkAt(a.config.Rules, time)
	if !v.covers(at) {
		return unsupportedFork(fmt.Sprintf("the attributes of engine_forkchoiceUpdated%s are for blocks of %s, their time is %d", v.name, v.forks, time))
	}
	if v.withdrawalsMayLack && at.shanghai != withdrawals {
		return invalidAttributes("payloadAttributes.withdrawals: expected from Shanghai on, and not before")
	}
	return invalidAttributes(notBuilt)
}
