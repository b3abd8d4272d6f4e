// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// A fungible token (ERC-20). Anyone may mint: the network is for trying things out.
/// It fails in two styles on purpose, custom errors and require with a reason.
contract Token {
    // Slot 0, so that balanceOf[a] lives at keccak256(a . 0).
    mapping(address => uint256) public balanceOf;
    // Slot 1.
    mapping(address => mapping(address => uint256)) public allowance;
    // Slot 2.
    uint256 public totalSupply;
    string public name;
    string public symbol;
    uint8 public constant decimals = 18;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    error InsufficientBalance(address account, uint256 balance, uint256 needed);
    error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);

    constructor(string memory name_, string memory symbol_) {
        name = name_;
        symbol = symbol_;
    }

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }

    /// Mints to many at once: one transaction with many logs.
    function airdrop(address[] calldata to, uint256 value) external {
        for (uint256 i = 0; i < to.length; i++) {
            _mint(to[i], value);
        }
    }

    function burn(uint256 value) external {
        _debit(msg.sender, value);
        totalSupply -= value;
        emit Transfer(msg.sender, address(0), value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _transfer(msg.sender, to, value);
        return true;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        if (allowed < value) {
            revert InsufficientAllowance(msg.sender, allowed, value);
        }
        if (allowed != type(uint256).max) {
            allowance[from][msg.sender] = allowed - value;
        }
        _transfer(from, to, value);
        return true;
    }

    function _mint(address to, uint256 value) private {
        require(to != address(0), "Token: mint to the zero address");
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function _transfer(address from, address to, uint256 value) private {
        require(to != address(0), "Token: transfer to the zero address");
        _debit(from, value);
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }

    function _debit(address from, uint256 value) private {
        uint256 balance = balanceOf[from];
        if (balance < value) {
            revert InsufficientBalance(from, balance, value);
        }
        balanceOf[from] = balance - value;
    }
}
