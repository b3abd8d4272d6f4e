// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A small contract made by the factory. close() sends its ether away; since
/// EIP-6780 the contract itself stays.
contract Box {
    uint256 public content;
    address public immutable maker;

    constructor(uint256 content_) payable {
        content = content_;
        maker = msg.sender;
    }

    function put(uint256 content_) external {
        content = content_;
    }

    function close(address payable to) external {
        selfdestruct(to);
    }
}

/// Lives for one transaction: it destroys itself in the transaction that creates it,
/// so that account, code and storage are gone afterwards and its CREATE2 address is free again.
contract Mayfly {
    uint256 public written;
    event Lived(address indexed at, uint256 value);

    function live(address payable heir) external payable {
        written = block.number;
        emit Lived(address(this), msg.value);
        selfdestruct(heir);
    }
}

/// Creates contracts by CREATE and CREATE2.
contract Factory {
    uint256 public made;

    event Created(address indexed at, uint256 content);
    event Created2(address indexed at, bytes32 indexed salt, uint256 content);

    function create(uint256 content) external payable returns (address at) {
        at = address(new Box{value: msg.value}(content));
        made++;
        emit Created(at, content);
    }

    function create2(bytes32 salt, uint256 content) external payable returns (address at) {
        at = address(new Box{value: msg.value, salt: salt}(content));
        made++;
        emit Created2(at, salt, content);
    }

    /// A creation that fails inside a transaction that does not (a collision uses up
    /// all gas given, hence the limit):
    /// the salt is taken the second time.
    function create2Twice(bytes32 salt) external returns (bool second) {
        new Box{salt: salt}(1);
        try this.create2{gas: 100000}(salt, 1) {
            second = true;
        } catch {
            second = false;
        }
        made++;
    }

    function mayfly(bytes32 salt, address payable heir) external payable {
        Mayfly m = new Mayfly{salt: salt}();
        m.live{value: msg.value}(heir);
    }
}
