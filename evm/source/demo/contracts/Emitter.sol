// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// Logs of every shape: none to four topics, with and without data, anonymous, dynamic.
contract Emitter {
    event Plain();
    event One(uint256 indexed a);
    event Two(uint256 indexed a, address indexed b, uint256 c);
    event Three(uint256 indexed a, address indexed b, bytes32 indexed c);
    event Note(address indexed author, string indexed subject, string text);
    event Blob(bytes data);
    event Rare(bytes32 indexed tag);
    event Anonymous4(uint256 indexed a, uint256 indexed b, uint256 indexed c, uint256 indexed d, bytes data) anonymous;
    event Anonymous1(bytes32 indexed a) anonymous;
    event Anonymous0(uint256 a, uint256 b) anonymous;

    /// One log of every count of topics, in order: 0, 1, 2, 3, 4.
    function all(uint256 seed) external {
        emit Anonymous0(seed, seed + 1);
        emit Plain();
        emit One(seed);
        emit Two(seed, msg.sender, seed * 2);
        emit Three(seed, msg.sender, keccak256(abi.encode(seed)));
    }

    /// No topic at all; the data is as given, empty too.
    function bare(bytes calldata data) external {
        bytes memory copy = data;
        assembly {
            log0(add(copy, 32), mload(copy))
        }
    }

    function anonymous4(uint256 a, uint256 b, uint256 c, uint256 d, bytes calldata data) external {
        emit Anonymous4(a, b, c, d, data);
    }

    /// An anonymous log whose only topic is chosen freely, a known event's signature too.
    function anonymous1(bytes32 topic) external {
        emit Anonymous1(topic);
    }

    function note(string calldata subject, string calldata text) external {
        emit Note(msg.sender, subject, text);
    }

    function blob(bytes calldata data) external {
        emit Blob(data);
    }

    function rare(bytes32 tag) external {
        emit Rare(tag);
    }

    /// n equal logs in one transaction.
    function burst(uint256 n) external {
        for (uint256 i = 0; i < n; i++) {
            emit One(i % 4);
        }
    }
}
