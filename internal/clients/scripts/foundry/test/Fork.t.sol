// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.0;

interface Vm {
    struct EthGetLogs {
        address emitter;
        bytes32[] topics;
        bytes data;
        bytes32 blockHash;
        uint64 blockNumber;
        bytes32 transactionHash;
        uint64 transactionIndex;
        uint256 logIndex;
        bool removed;
    }

    function createFork(string calldata url, uint256 number) external returns (uint256 id);
    function createSelectFork(string calldata url) external returns (uint256 id);
    function createSelectFork(string calldata url, bytes32 transaction) external returns (uint256 id);
    function selectFork(uint256 id) external;
    function rollFork(uint256 number) external;
    function transact(bytes32 transaction) external;
    function prank(address sender) external;
    function rpc(string calldata method, string calldata params) external returns (bytes memory);
    function eth_getLogs(uint256 first, uint256 last, address emitter, bytes32[] memory topics) external returns (EthGetLogs[] memory);
    function envString(string calldata) external view returns (string memory);
    function envAddress(string calldata) external view returns (address);
    function envBytes32(string calldata) external view returns (bytes32);
    function envUint(string calldata) external view returns (uint256);
    function envUint(string calldata, string calldata delimiter) external view returns (uint256[] memory);
}

interface Token {
    function balanceOf(address) external view returns (uint256);
    function transfer(address, uint256) external returns (bool);
}

// Fork reads the demo at several blocks and within one.
contract ForkTest {
    Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
    string url;
    Token token;
    address holder;

    function setUp() public {
        url = vm.envString("URL");
        token = Token(vm.envAddress("TOKEN"));
        holder = vm.envAddress("HOLDER");
    }

    function testBlocks() public {
        uint256[] memory numbers = vm.envUint("BLOCKS", ",");
        uint256[] memory balances = vm.envUint("BALANCES", ",");
        vm.createSelectFork(url);
        require(block.chainid == vm.envUint("CHAIN") && block.number >= numbers[0], "newest block");
        for (uint256 i = 0; i < numbers.length; i++) { // the older ones later
            vm.rollFork(numbers[i]);
            require(block.number == numbers[i] && token.balanceOf(holder) == balances[i], "balance");
        }
        uint256 other = vm.createFork(url, numbers[0]);
        vm.selectFork(other);
        require(block.number == numbers[0] && token.balanceOf(holder) == balances[0], "balance in another fork");
    }

    function testTransfer() public {
        vm.selectFork(vm.createFork(url, vm.envUint("BLOCK")));
        uint256 held = token.balanceOf(holder);
        address receiver = address(0xbeef);
        vm.prank(holder);
        require(token.transfer(receiver, 5));
        require(token.balanceOf(receiver) == 5 && token.balanceOf(holder) == held - 5, "balances");
    }

    // The transaction moves an amount to its receiver, whom no other transaction of the block concerns.
    function testTransaction() public {
        bytes32 transaction = vm.envBytes32("TRANSACTION");
        address receiver = vm.envAddress("RECEIVER");
        vm.createSelectFork(url, transaction);
        require(block.number == vm.envUint("BLOCK"), "block");
        uint256 held = token.balanceOf(receiver);
        require(held == vm.envUint("BEFORE"), "balance before the transaction");
        vm.transact(transaction);
        require(token.balanceOf(receiver) == held + vm.envUint("AMOUNT"), "balance after the transaction");
    }

    function testRequests() public {
        vm.createSelectFork(url);
        require(uint256(bytes32(vm.rpc("eth_getStorageAt", vm.envString("STORAGE")))) == vm.envUint("BALANCES", ",")[0], "storage");
        uint256 number = vm.envUint("BLOCK");
        bytes32[] memory topics = new bytes32[](1);
        topics[0] = keccak256("Transfer(address,address,uint256)");
        require(vm.eth_getLogs(number, number, address(token), topics).length == vm.envUint("TRANSFERS"), "logs");
    }
}
