// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A hundred balances, a view that reads them all, and views that tell the block
/// they run in: what a call as of an old block has to get right.
contract Ledger {
    uint256 public constant SIZE = 100;
    uint256[100] public balances; // slots 0 to 99
    uint256 public count; // slot 100
    address public lastCaller;

    event Credited(uint256 indexed index, uint256 amount, uint256 count);
    event Moved(uint256 indexed from, uint256 indexed to, uint256 amount);

    function credit(uint256 index, uint256 amount) external payable {
        balances[index] += amount;
        count++;
        lastCaller = msg.sender;
        emit Credited(index, amount, count);
    }

    /// Moves all that there is, so that slots are cleared too.
    function sweep(uint256 from, uint256 to) external {
        uint256 amount = balances[from];
        balances[from] = 0;
        balances[to] += amount;
        emit Moved(from, to, amount);
    }

    function sum() external view returns (uint256 total) {
        for (uint256 i = 0; i < SIZE; i++) {
            total += balances[i];
        }
    }

    /// The block as the EVM sees it.
    function environment()
        external
        view
        returns (
            uint256 number,
            uint256 timestamp,
            address coinbase,
            uint256 prevrandao,
            uint256 gaslimit,
            uint256 basefee,
            uint256 blobbasefee,
            uint256 chainid,
            bytes32 parentHash
        )
    {
        return (
            block.number,
            block.timestamp,
            block.coinbase,
            block.prevrandao,
            block.gaslimit,
            block.basefee,
            block.blobbasefee,
            block.chainid,
            blockhash(block.number - 1)
        );
    }

    /// Uses gas for memory alone: fills a block without work or state.
    function fill(uint256 bytesOfMemory) external pure {
        assembly {
            mstore8(bytesOfMemory, 1)
        }
    }
}
