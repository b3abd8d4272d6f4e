package blocktests

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/source/file"

	"github.com/ethereum/go-ethereum/consensus"
	"github.com/ethereum/go-ethereum/consensus/misc"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
)

// Refusals that are not of a check that execution makes.
const (
	checkDecoding = "decoding" // the source gives no block
	checkLink     = "link"     // the block does not follow the last one
)

// reason is a refusal that an exception of the tests may lead to. What is set must fit.
type reason struct {
	check string // one of execute's checks, or of those above
	err   error  // what the error wraps
	says  string // a regular expression for the error's text
}

// reasons lists the refusals that satisfy each exception of the tests. Most name
// one check. There are more where a block breaks several rules, since the tests do
// not say which one is checked first.
func reasons() map[string][]reason {
	return map[string][]reason{
		"BlockException.EXTRA_DATA_TOO_BIG":                      {{check: execute.CheckHeader, says: "extra-data longer"}},
		"BlockException.EXTRA_DATA_INVALID_DAO":                  {{check: execute.CheckHeader, err: misc.ErrBadProDAOExtra}, {check: execute.CheckUncles, err: misc.ErrBadProDAOExtra}},
		"BlockException.GASLIMIT_TOO_BIG":                        {{check: execute.CheckHeader, says: "invalid gasLimit"}},
		"BlockException.GAS_USED_OVERFLOW":                       {{check: execute.CheckHeader, says: "invalid gasUsed"}},
		"BlockException.IMPORT_IMPOSSIBLE_DIFFICULTY_OVER_PARIS": {{check: execute.CheckHeader, says: "proof of work after the merge"}},
		"BlockException.IMPORT_IMPOSSIBLE_LEGACY":                {{check: execute.CheckHeader, says: "missing baseFee"}},
		"BlockException.IMPORT_IMPOSSIBLE_LEGACY_WRONG_PARENT":   {{check: execute.CheckHeader, says: "missing baseFee"}, {check: execute.CheckUncles, says: "missing baseFee"}},
		"BlockException.IMPORT_IMPOSSIBLE_LONDON_WRONG_PARENT":   {{check: execute.CheckHeader, says: "invalid baseFee before fork"}, {check: execute.CheckUncles, says: "invalid baseFee before fork"}},
		// A header of Paris either lacks the withdrawals' root, or does while the body has withdrawals.
		"BlockException.IMPORT_IMPOSSIBLE_PARIS_OVER_SHANGHAI": {{check: execute.CheckHeader, says: "missing withdrawalsHash"}, {check: execute.CheckWithdrawalsRoot, says: "expected no withdrawals"}},
		"BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POS":     {{check: execute.CheckHeader, says: "proof of stake before the merge"}},
		"BlockException.IMPORT_IMPOSSIBLE_PARIS_WRONG_POW":     {{check: execute.CheckHeader, says: "proof of work after the merge"}},
		"BlockException.IMPORT_IMPOSSIBLE_SHANGHAI":            {{check: execute.CheckHeader, says: "invalid withdrawalsHash"}},
		// The uncles either have their root in the header, or do not.
		"BlockException.IMPORT_IMPOSSIBLE_UNCLES_OVER_PARIS": {{check: execute.CheckHeader, says: "invalid uncle hash"}, {check: execute.CheckUnclesHash}},
		// A header of Cancun without blob fields, or with one of them, is read as if the next field were the missing one.
		"BlockException.INCORRECT_BLOCK_FORMAT":                    {{check: checkDecoding, says: "too long for uint64|too few elements"}, {check: execute.CheckHeader, says: "(missing|invalid) ?(excessBlobGas|blobGasUsed|(parentB|b)eaconRoot)"}},
		"BlockException.INCORRECT_BLOB_GAS_USED":                   {{check: execute.CheckBlobs}, {check: execute.CheckHeader, says: "blob gas used"}},
		"BlockException.INCORRECT_EXCESS_BLOB_GAS":                 {{check: execute.CheckHeader, says: "invalid excessBlobGas"}},
		"BlockException.INVALID_BASEFEE_PER_GAS":                   {{check: execute.CheckHeader, says: "invalid baseFee"}},
		"BlockException.INVALID_BLOCK_HASH":                        {{check: execute.CheckWithdrawalsRoot}},
		"BlockException.INVALID_BLOCK_NUMBER":                      {{check: checkLink, err: ingest.ErrGap}, {check: checkLink, err: ingest.ErrOtherChain}},
		"BlockException.INVALID_BLOCK_TIMESTAMP_OLDER_THAN_PARENT": {{check: execute.CheckHeader, says: "timestamp"}},
		"BlockException.INVALID_DEPOSIT_EVENT_LAYOUT":              {{check: execute.CheckExecution, says: "deposit"}},
		// One of these comes after the merge.
		"BlockException.INVALID_DIFFICULTY": {{check: execute.CheckHeader, says: "invalid difficulty|proof of work after the merge"}},
		// One of these also has more gas used than its limit, another one a base fee too early.
		"BlockException.INVALID_GASLIMIT":              {{check: execute.CheckHeader, says: "gas limit|gasLimit|invalid baseFee before fork"}},
		"BlockException.INVALID_GAS_USED":              {{check: execute.CheckGasUsed}},
		"BlockException.INVALID_LOG_BLOOM":             {{check: execute.CheckBloom}},
		"BlockException.INVALID_RECEIPTS_ROOT":         {{check: execute.CheckReceiptsRoot}},
		"BlockException.INVALID_REQUESTS":              {{check: execute.CheckRequestsHash}},
		"BlockException.INVALID_STATE_ROOT":            {{check: execute.CheckStateRoot}},
		"BlockException.INVALID_TRANSACTIONS_ROOT":     {{check: execute.CheckTransactionsRoot}},
		"BlockException.INVALID_VERSIONED_HASHES":      {{check: execute.CheckBlobs}},
		"BlockException.INVALID_WITHDRAWALS_ROOT":      {{check: execute.CheckWithdrawalsRoot}},
		"BlockException.RLP_BLOCK_LIMIT_EXCEEDED":      {{check: execute.CheckSize}},
		"BlockException.RLP_INVALID_ADDRESS":           {{check: checkDecoding, says: "common.Address"}},
		"BlockException.RLP_INVALID_FIELD_OVERFLOW_64": {{check: checkDecoding, says: "too long for uint64"}},
		"BlockException.RLP_STRUCTURES_ENCODING":       {{check: checkDecoding}},
		"BlockException.RLP_WITHDRAWALS_NOT_READ":      {{check: execute.CheckWithdrawalsRoot, says: "got no withdrawals"}},
		"BlockException.SYSTEM_CONTRACT_CALL_FAILED":   {{check: execute.CheckExecution, says: "system call failed"}},
		"BlockException.SYSTEM_CONTRACT_EMPTY":         {{check: execute.CheckExecution, says: "empty system contract"}},
		"BlockException.UNCLE_PARENT_INCORRECT":        {{check: execute.CheckUncles, says: "uncle's parent"}},
		"BlockException.UNKNOWN_PARENT":                {{check: checkLink, err: ingest.ErrOtherChain}},
		"BlockException.UNKNOWN_PARENT_ZERO":           {{check: checkLink, err: ingest.ErrOtherChain}},
		// Some offer less than the base fee as well.
		"TransactionException.GAS_ALLOWANCE_EXCEEDED":                    {{check: execute.CheckExecution, err: core.ErrGasLimitReached}, {check: execute.CheckExecution, err: core.ErrFeeCapTooLow}},
		"TransactionException.GAS_LIMIT_EXCEEDS_MAXIMUM":                 {{check: execute.CheckExecution, err: core.ErrGasLimitTooHigh}},
		"TransactionException.INSUFFICIENT_ACCOUNT_FUNDS":                {{check: execute.CheckExecution, err: core.ErrInsufficientFunds}},
		"TransactionException.INITCODE_SIZE_EXCEEDED":                    {{check: execute.CheckExecution, err: vm.ErrMaxInitCodeSizeExceeded}},
		"TransactionException.INSUFFICIENT_MAX_FEE_PER_BLOB_GAS":         {{check: execute.CheckExecution, err: core.ErrBlobFeeCapTooLow}},
		"TransactionException.INSUFFICIENT_MAX_FEE_PER_GAS":              {{check: execute.CheckExecution, err: core.ErrFeeCapTooLow}},
		"TransactionException.INTRINSIC_GAS_BELOW_FLOOR_GAS_COST":        {{check: execute.CheckExecution, err: core.ErrFloorDataGas}},
		"TransactionException.INTRINSIC_GAS_TOO_LOW":                     {{check: execute.CheckExecution, err: core.ErrIntrinsicGas}, {check: execute.CheckExecution, err: core.ErrFloorDataGas}},
		"TransactionException.NONCE_IS_MAX":                              {{check: execute.CheckExecution, err: core.ErrNonceMax}},
		"TransactionException.NONCE_MISMATCH_TOO_HIGH":                   {{check: execute.CheckExecution, err: core.ErrNonceTooHigh}},
		"TransactionException.NONCE_MISMATCH_TOO_LOW":                    {{check: execute.CheckExecution, err: core.ErrNonceTooLow}},
		"TransactionException.PRIORITY_GREATER_THAN_MAX_FEE_PER_GAS":     {{check: execute.CheckExecution, err: core.ErrTipAboveFeeCap}},
		"TransactionException.SENDER_NOT_EOA":                            {{check: execute.CheckExecution, err: core.ErrSenderNoEOA}},
		"TransactionException.TYPE_1_TX_PRE_FORK":                        {{check: execute.CheckSignature, err: types.ErrTxTypeNotSupported}},
		"TransactionException.TYPE_2_TX_PRE_FORK":                        {{check: execute.CheckSignature, err: types.ErrTxTypeNotSupported}},
		"TransactionException.TYPE_3_TX_PRE_FORK":                        {{check: execute.CheckSignature, err: types.ErrTxTypeNotSupported}},
		"TransactionException.TYPE_4_TX_PRE_FORK":                        {{check: execute.CheckSignature, err: types.ErrTxTypeNotSupported}},
		"TransactionException.TYPE_3_TX_BLOB_COUNT_EXCEEDED":             {{check: execute.CheckExecution, err: core.ErrTooManyBlobs}},
		"TransactionException.TYPE_3_TX_CONTRACT_CREATION":               {{check: checkDecoding, says: "BlobTx"}},
		"TransactionException.TYPE_3_TX_INVALID_BLOB_VERSIONED_HASH":     {{check: execute.CheckExecution, says: "invalid hash version"}},
		"TransactionException.TYPE_3_TX_MAX_BLOB_GAS_ALLOWANCE_EXCEEDED": {{check: execute.CheckHeader, says: "exceeds maximum allowance"}},
		"TransactionException.TYPE_3_TX_WITH_FULL_BLOBS":                 {{check: execute.CheckBlobs, says: "has a sidecar"}},
		"TransactionException.TYPE_3_TX_ZERO_BLOBS":                      {{check: execute.CheckExecution, err: core.ErrMissingBlobHashes}},
		"TransactionException.TYPE_4_EMPTY_AUTHORIZATION_LIST":           {{check: execute.CheckExecution, err: core.ErrEmptyAuthList}},
		"TransactionException.TYPE_4_TX_CONTRACT_CREATION":               {{check: checkDecoding, says: "SetCodeTx"}},
		"TransactionException.TYPE_NOT_SUPPORTED":                        {{check: execute.CheckSignature, err: types.ErrTxTypeNotSupported}},
	}
}

// checkOf says which check an import ended with, "" when none refused a block.
func checkOf(err error) string {
	var refused *execute.CheckError
	var undecoded *file.Error
	switch {
	case errors.As(err, &refused):
		return refused.Check
	case errors.As(err, &undecoded):
		return checkDecoding
	case errors.Is(err, ingest.ErrGap), errors.Is(err, ingest.ErrOtherChain):
		return checkLink
	}
	return ""
}

// checkRefusal checks that an import ended with the refusal of a block, for one
// of the reasons that the test gives, which are parted by |.
func checkRefusal(b bad, err error) error {
	if err == nil {
		return fmt.Errorf("a block was not refused, expected %s", b.ExpectException)
	}
	check := checkOf(err)
	var refused *execute.CheckError
	if errors.As(err, &refused) && (b.block == nil || refused.Hash != b.block.Hash() || refused.Number != b.block.NumberU64()) {
		return fmt.Errorf("another block was refused: %w", err)
	}
	known := reasons()
	for exception := range strings.SplitSeq(b.ExpectException, "|") {
		if len(known[exception]) == 0 {
			return fmt.Errorf("unknown exception %s; the import ended with: %w", exception, err)
		}
		for _, r := range known[exception] {
			if r.check == check && (r.err == nil || errors.Is(err, r.err)) && regexp.MustCompile(r.says).MatchString(err.Error()) {
				return nil
			}
		}
	}
	return fmt.Errorf("a block was refused for another reason than %s: %w", b.ExpectException, err)
}

func TestCheckRefusal(t *testing.T) {
	block := types.NewBlockWithHeader(&types.Header{})
	refusal := func(check string, err error) error {
		return fmt.Errorf("import: %w", &execute.CheckError{Hash: block.Hash(), Check: check, Err: err})
	}
	for _, test := range []struct {
		exception string
		err       error
		ok        bool
	}{
		{"BlockException.INVALID_STATE_ROOT", refusal(execute.CheckStateRoot, nil), true},
		{"BlockException.INVALID_STATE_ROOT", refusal(execute.CheckBloom, nil), false},
		{"BlockException.INVALID_STATE_ROOT", nil, false},
		{"BlockException.INVALID_STATE_ROOT", errors.New("the store has failed"), false},
		{"BlockException.INVALID_STATE_ROOT", &execute.CheckError{Check: execute.CheckStateRoot}, false}, // of another block
		{"BlockException.SOMETHING_NEW", refusal(execute.CheckStateRoot, nil), false},
		{"TransactionException.NONCE_MISMATCH_TOO_LOW", refusal(execute.CheckExecution, core.ErrNonceTooHigh), false},
		{"TransactionException.NONCE_MISMATCH_TOO_HIGH|BlockException.INVALID_STATE_ROOT", refusal(execute.CheckExecution, core.ErrNonceTooHigh), true},
		{"BlockException.GASLIMIT_TOO_BIG", refusal(execute.CheckHeader, errors.New("invalid gasLimit")), true},
		{"BlockException.GASLIMIT_TOO_BIG", refusal(execute.CheckHeader, consensus.ErrInvalidNumber), false},
		{"BlockException.RLP_STRUCTURES_ENCODING", &file.Error{Err: errors.New("rlp")}, true},
		{"BlockException.UNKNOWN_PARENT", ingest.ErrOtherChain, true},
	} {
		if err := checkRefusal(bad{encodedBlock{ExpectException: test.exception}, block}, test.err); (err == nil) != test.ok {
			t.Errorf("%s, import ends with %v: got %v, expected ok %t", test.exception, test.err, err, test.ok)
		}
	}
}
