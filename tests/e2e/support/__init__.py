# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: programs in folders of their own, clients without a library, and waits that end."""
