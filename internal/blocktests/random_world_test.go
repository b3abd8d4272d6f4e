package blocktests

import (
	"crypto/ecdsa"
	"math/big"
	"math/rand/v2"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// randomWorld makes random blocks. What its contracts do is in libraries: straight programs. A puppet calls the library
// that its input names as its own code, so that each puppet, each contract that was created, and each account that delegates
// to one may do everything.
type randomWorld struct {
	*rand.Rand
	config    *params.ChainConfig
	keys      []*ecdsa.PrivateKey
	libraries []common.Address
	puppets   []common.Address
	contracts []common.Address // that puppets create, with the code of puppets; three of each
	subject   int              // index of the contract that most transactions of the block are about
	initcodes [][]byte
	reader    common.Address // library that logs slots
	places    []common.Address
	create2   bool
}

const (
	randomLibraries = 40
	randomPuppets   = 3
	randomKeys      = 5
	randomSlots     = 5
)

func newRandomWorld(config *params.ChainConfig, random *rand.Rand) *randomWorld {
	w := &randomWorld{Rand: random, config: config, create2: config.ConstantinopleBlock != nil, reader: common.Address{18: 0x9, 19: 0x1}}
	for i := range randomKeys {
		key, err := crypto.ToECDSA(crypto.Keccak256([]byte{byte(i)}))
		if err != nil {
			panic(err)
		}
		w.keys = append(w.keys, key)
		w.places = append(w.places, crypto.PubkeyToAddress(key.PublicKey))
	}
	for i := range randomLibraries {
		w.libraries = append(w.libraries, common.Address{18: 0x10, 19: byte(i)})
	}
	for i := range randomPuppets {
		w.puppets = append(w.puppets, common.Address{18: 0x20, 19: byte(i)})
	}
	w.places = append(w.places, w.puppets...)
	for i := range byte(4) {
		w.places = append(w.places, emptyPlace(2*i), emptyPlace(2*i+1), common.Address{18: 0x40, 19: i}, common.Address{19: i + 2}) // empty, absent, precompiled
	}
	w.initcodes = w.makeInitcodes()
	for _, puppet := range w.puppets {
		if !w.create2 {
			for nonce := range uint64(3) {
				w.contracts = append(w.contracts, crypto.CreateAddress(puppet, nonce+1))
				w.places = append(w.places, crypto.CreateAddress(puppet, nonce+1))
			}
			continue
		}
		for _, initcode := range w.initcodes[:3] {
			w.contracts = append(w.contracts, crypto.CreateAddress2(puppet, common.Hash{}, crypto.Keccak256(initcode)))
			w.places = append(w.places, crypto.CreateAddress2(puppet, common.Hash{}, crypto.Keccak256(initcode)))
		}
	}
	return w
}

func emptyPlace(i byte) common.Address { return common.Address{18: 0x30, 19: i} }

// puppetCode calls the library that the input names as its own code. Without input it accepts what it is paid.
func puppetCode() []byte {
	p := program.New()
	p.Op(vm.CALLDATASIZE, vm.ISZERO)
	at := p.Size() + 1
	p.Push(0).Op(vm.JUMPI)
	p.Push(0).Push(0).Push(0).Push(0).Push(0).Op(vm.CALLDATALOAD, vm.GAS, vm.DELEGATECALL, vm.ISZERO)
	second := p.Size() + 1
	p.Push(0).Op(vm.JUMPI)
	code := p.Bytes()
	code[at] = byte(len(code))
	code = append(code, byte(vm.JUMPDEST), byte(vm.STOP))
	code[second] = byte(len(code))
	return append(code, byte(vm.JUMPDEST), byte(vm.PUSH1), 0, byte(vm.PUSH1), 0, byte(vm.REVERT))
}

func (w *randomWorld) makeInitcodes() [][]byte {
	code := puppetCode()
	library := func(p *program.Program) *program.Program {
		return p.Push(0).Push(0).Push(0).Push(0).Push(w.library()).Op(vm.GAS, vm.DELEGATECALL, vm.POP)
	}
	return [][]byte{
		program.New().ReturnData(code).Bytes(),
		program.New().Sstore(1, 1).ReturnData(code).Bytes(),
		library(program.New()).ReturnData(append(code, 1)).Bytes(),
		program.New().Sstore(1, 1).Selfdestruct(w.place()).Bytes(),
		library(program.New()).ReturnData(append(code, 2)).Bytes(),
		program.New().Selfdestruct(w.place()).Bytes(),
		program.New().Push(0).Push(0).Op(vm.REVERT).Bytes(),
		program.New().Op(vm.STOP).Bytes(),
	}
}

func pick[T any](w *randomWorld, of []T) T { return of[w.IntN(len(of))] }

func (w *randomWorld) library() common.Address { return pick(w, w.libraries) }

func (w *randomWorld) place() common.Address { return pick(w, w.places) }

// libraryCode is a program: one for each way to create a contract or to destroy it, and random ones.
func (w *randomWorld) libraryCode(i int) []byte {
	p := program.New()
	switch creations := len(w.initcodes); {
	case i < creations:
		w.create(p, w.initcodes[i])
		return p.Op(vm.STOP).Bytes()
	case i < creations+4:
		return p.Selfdestruct(w.place()).Bytes()
	case i == creations+4:
		return p.Op(vm.ADDRESS, vm.SELFDESTRUCT).Bytes()
	}
	for range 1 + w.IntN(6) {
		if w.act(p) {
			break
		}
	}
	return p.Op(vm.STOP).Bytes()
}

// act adds an action to a program. It returns true if that ends the program.
func (w *randomWorld) act(p *program.Program) (ends bool) {
	slot := w.IntN(randomSlots)
	switch w.IntN(17) {
	case 0, 1, 2:
		p.Sstore(slot, w.IntN(3))
	case 3:
		p.Push(slot).Op(vm.SLOAD).Push(1).Op(vm.ADD).Push(slot).Op(vm.SSTORE)
	case 4, 5, 6, 7, 8:
		p.Push(w.library()).Push(0).Op(vm.MSTORE)
		size := 32 * min(w.IntN(4), 1)
		p.Push(0).Push(0).Push(size).Push(0).Push(max(0, w.IntN(6)-3)).Push(w.place()).Push(100_000+w.IntN(300_000)).Op(vm.CALL, vm.POP)
	case 9:
		if w.IntN(3) == 0 {
			p.Op(vm.ADDRESS, vm.SELFDESTRUCT)
		} else {
			p.Selfdestruct(w.place())
		}
		return true
	case 10, 11:
		w.create(p, pick(w, w.initcodes))
	case 12:
		p.Push(slot).Op(vm.SLOAD).Push(0).Op(vm.MSTORE).Push(32).Push(0).Op(vm.LOG0)
	case 13:
		p.Push(w.place()).Op(pick(w, []vm.OpCode{vm.BALANCE, vm.EXTCODESIZE})).Push(slot).Op(vm.SSTORE)
	case 14:
		p.Push(0).Push(0).Push(0).Push(0).Push(w.place()).Push(50_000).Op(vm.STATICCALL, vm.POP)
	case 15:
		p.Push(0).Push(0).Push(0).Push(0).Push(w.library()).Push(200_000).Op(vm.DELEGATECALL, vm.POP)
	case 16:
		switch w.IntN(3) {
		case 0:
			p.Push(0).Push(0).Op(vm.REVERT)
			return true
		case 1:
			p.Op(vm.INVALID)
			return true
		}
	}
	return false
}

// create adds a creation to a program. Before Constantinople each creation has another address.
func (w *randomWorld) create(p *program.Program, initcode []byte) {
	if w.create2 {
		p.Create2(initcode, 0).Op(vm.POP)
	} else {
		p.Mstore(initcode, 0).Push(len(initcode)).Push(0).Push(w.IntN(2)).Op(vm.CREATE, vm.POP)
	}
}

// probe is the code of a creation that reads all there is: balances and codes, and by means of the puppets slots.
func (w *randomWorld) probe() []byte {
	p := program.New()
	for _, place := range w.places {
		p.Push(place).Op(vm.BALANCE).Push(0).Op(vm.MSTORE).Push(place).Op(vm.EXTCODESIZE).Push(32).Op(vm.MSTORE)
		if w.create2 {
			p.Push(place).Op(vm.EXTCODEHASH).Push(64).Op(vm.MSTORE)
		}
		p.Push(96).Push(0).Op(vm.LOG0).Push(w.reader).Push(0).Op(vm.MSTORE)
		p.Push(32).Push(0).Push(32).Push(0).Push(0).Push(place).Push(200_000).Op(vm.CALL, vm.POP)
	}
	return p.Op(vm.STOP).Bytes()
}

func (w *randomWorld) genesis() *core.Genesis {
	difficulty := big.NewInt(131072)
	if w.config.TerminalTotalDifficulty != nil {
		difficulty = new(big.Int)
	}
	g := &core.Genesis{Config: w.config, GasLimit: 60_000_000, Difficulty: difficulty, Alloc: types.GenesisAlloc{}}
	if w.config.LondonBlock != nil {
		g.BaseFee = big.NewInt(params.InitialBaseFee)
	}
	for i, key := range w.keys {
		g.Alloc[crypto.PubkeyToAddress(key.PublicKey)] = types.Account{Balance: ether(int64(1000 * (i + 1)))}
	}
	for i, library := range w.libraries {
		g.Alloc[library] = types.Account{Balance: big.NewInt(int64(i % 3)), Code: w.libraryCode(i), Nonce: uint64(i % 2)}
	}
	for i, puppet := range w.puppets {
		g.Alloc[puppet] = types.Account{Balance: big.NewInt(int64(3 * i)), Code: puppetCode(), Nonce: 1}
		if i > 0 {
			storage := map[common.Hash]common.Hash{{31: byte(i)}: {31: 7}}
			g.Alloc[puppet] = types.Account{Balance: big.NewInt(int64(3 * i)), Code: puppetCode(), Nonce: 1, Storage: storage}
		}
	}
	for i := range byte(8) {
		g.Alloc[emptyPlace(i)] = types.Account{Balance: new(big.Int)}
	}
	reader := program.New()
	for slot := range randomSlots {
		reader.Push(slot).Op(vm.SLOAD).Push(0).Op(vm.MSTORE).Push(32).Push(0).Op(vm.LOG0)
	}
	g.Alloc[w.reader] = types.Account{Balance: new(big.Int), Code: reader.Op(vm.STOP).Bytes()}
	w.allocSystem(g.Alloc)
	return g
}

// allocSystem adds the contracts that blocks call.
func (w *randomWorld) allocSystem(alloc types.GenesisAlloc) {
	add := func(address common.Address, code []byte) {
		alloc[address] = types.Account{Balance: new(big.Int), Nonce: 1, Code: code}
		w.places = append(w.places, address)
	}
	if w.config.CancunTime != nil {
		add(params.BeaconRootsAddress, params.BeaconRootsCode)
	}
	if w.config.PragueTime != nil {
		add(params.HistoryStorageAddress, params.HistoryStorageCode)
		add(params.WithdrawalQueueAddress, params.WithdrawalQueueCode)
		add(params.ConsolidationQueueAddress, params.ConsolidationQueueCode)
	}
}

// fill adds random transactions to a block.
func (w *randomWorld) fill(i int, b *core.BlockGen) {
	b.SetCoinbase(w.place())
	if w.config.TerminalTotalDifficulty != nil {
		b.SetPoS()
	}
	if w.config.CancunTime != nil {
		b.SetParentBeaconRoot(common.Hash{31: byte(w.Uint32())})
	}
	w.subject = w.IntN(len(w.contracts))
	for range 3 + w.IntN(6) {
		w.send(b)
	}
	if w.config.ShanghaiTime != nil {
		for range w.IntN(4) {
			b.AddWithdrawal(&types.Withdrawal{Validator: 1, Address: w.place(), Amount: uint64(w.IntN(3))})
		}
	}
	if w.config.TerminalTotalDifficulty == nil && i > 1 && w.IntN(2) == 0 {
		b.AddUncle(&types.Header{
			ParentHash: b.PrevBlock(i - 2).Hash(), Number: b.PrevBlock(i - 1).Number(), Coinbase: w.place(), Extra: []byte{byte(i)},
			UncleHash: types.EmptyUncleHash, TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash,
		})
	}
}

// send adds a transaction.
func (w *randomWorld) send(b *core.BlockGen) {
	key := pick(w, w.keys)
	from := crypto.PubkeyToAddress(key.PublicKey)
	gas, price := uint64(300_000+w.IntN(3_000_000)), uint256.NewInt(10*params.GWei)
	if w.config.LondonBlock != nil {
		price = uint256.MustFromBig(b.BaseFee())
	}
	fee := new(uint256.Int).Mul(price, uint256.NewInt(gas+params.BlobTxBlobGasPerBlob))
	if b.GetBalance(from).Lt(fee.AddUint64(fee, 100)) {
		return
	}
	to, value, data := w.place(), uint256.NewInt(uint64(max(0, w.IntN(6)-3))), []byte(nil)
	switch w.IntN(10) {
	case 0: // a transfer
	case 1:
		w.sweep(b, key, price)
		return
	case 2: // a creation
		tx := &types.LegacyTx{Nonce: b.TxNonce(from), Gas: gas, GasPrice: price.ToBig(), Value: value.ToBig(), Data: pick(w, w.initcodes)}
		b.AddTx(types.MustSignNewTx(key, b.Signer(), tx))
		return
	case 3:
		if w.config.PragueTime != nil {
			to, value, data = pick(w, []common.Address{params.WithdrawalQueueAddress, params.ConsolidationQueueAddress}), uint256.NewInt(uint64(w.IntN(3))), make([]byte, 56)
			if to == params.ConsolidationQueueAddress {
				data = make([]byte, 96)
			}
			break
		}
		fallthrough
	case 4: // out of gas
		gas = 30_000 + uint64(w.IntN(100_000))
		fallthrough
	case 8, 9:
		data = common.BytesToHash(w.library().Bytes()).Bytes()
		if w.IntN(4) > 0 {
			to = pick(w, pick(w, [][]common.Address{w.puppets, w.contracts}))
		}
	case 5, 6, 7: // the contract that most transactions of the block are about is created, destroyed or used
		library := w.subject % len(w.puppets)
		to = w.puppets[w.subject/len(w.puppets)]
		if action := w.IntN(3); action > 0 {
			to = w.contracts[w.subject]
			library = len(w.initcodes) + w.IntN(5)
			if action == 2 {
				library = w.IntN(len(w.libraries))
			}
		}
		data = common.BytesToHash(w.libraries[library].Bytes()).Bytes()
	}
	b.AddTx(w.sign(b, key, to, gas, price, value, data))
}

// sweep sends all that an account has.
func (w *randomWorld) sweep(b *core.BlockGen, key *ecdsa.PrivateKey, price *uint256.Int) {
	from := crypto.PubkeyToAddress(key.PublicKey)
	to := crypto.PubkeyToAddress(pick(w, w.keys).PublicKey)
	if key == w.keys[0] || to == from {
		return // one account keeps what it has
	}
	gas := uint256.NewInt(21_000)
	value := new(uint256.Int).Sub(b.GetBalance(from), gas.Mul(gas, price))
	if w.IntN(2) == 0 {
		value.Div(value, uint256.NewInt(2))
	}
	tx := &types.LegacyTx{Nonce: b.TxNonce(from), Gas: 21_000, GasPrice: price.ToBig(), To: &to, Value: value.ToBig()}
	if w.config.PragueTime != nil {
		return // the receiver may have code
	}
	b.AddTx(types.MustSignNewTx(key, b.Signer(), tx))
}

// sign signs a transaction of a random type.
func (w *randomWorld) sign(b *core.BlockGen, key *ecdsa.PrivateKey, to common.Address, gas uint64, price, value *uint256.Int, data []byte) *types.Transaction {
	nonce := b.TxNonce(crypto.PubkeyToAddress(key.PublicKey))
	chain := uint256.MustFromBig(w.config.ChainID)
	switch kind := w.IntN(4); {
	case kind <= 1 && w.config.PragueTime != nil:
		tx := &types.SetCodeTx{ChainID: chain, Nonce: nonce, GasTipCap: new(uint256.Int), GasFeeCap: price, Gas: gas + 100_000, To: to, Value: value, Data: data}
		for range 1 + w.IntN(3) {
			tx.AuthList = append(tx.AuthList, w.authorize(b, key, len(tx.AuthList)))
		}
		return types.MustSignNewTx(key, b.Signer(), tx)
	case kind == 2 && w.config.CancunTime != nil:
		tx := &types.BlobTx{ChainID: chain, Nonce: nonce, GasTipCap: new(uint256.Int), GasFeeCap: price, Gas: gas, To: to, Value: value, Data: data, BlobFeeCap: uint256.NewInt(10)}
		tx.BlobHashes = []common.Hash{{0: 1}}
		return types.MustSignNewTx(key, b.Signer(), tx)
	}
	return types.MustSignNewTx(key, b.Signer(), &types.LegacyTx{Nonce: nonce, Gas: gas, GasPrice: price.ToBig(), To: &to, Value: value.ToBig(), Data: data})
}

// authorize makes an authorization, which may be invalid, for a transaction that a key signs.
func (w *randomWorld) authorize(b *core.BlockGen, sender *ecdsa.PrivateKey, before int) types.SetCodeAuthorization {
	key := pick(w, w.keys)
	nonce := b.TxNonce(crypto.PubkeyToAddress(key.PublicKey))
	if key == sender {
		nonce++
	}
	if w.IntN(4) == 0 {
		nonce += uint64(before)
	}
	to := pick(w, append([]common.Address{{}, w.place(), w.library()}, w.puppets...))
	signed, err := types.SignSetCode(key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(w.config.ChainID), Address: to, Nonce: nonce})
	if err != nil {
		panic(err)
	}
	return signed
}
