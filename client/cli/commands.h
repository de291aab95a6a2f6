// SPDX-License-Identifier: Apache-2.0
//
// The commands. Each does what its options say and answers the exit code.
#pragma once

#include "client/cli/options.h"

namespace holdfast::cli {

int Execute(const GlobalOptions& global, const RunOptions& options);
int Execute(const GlobalOptions& global, const AcquireOptions& options);
int Execute(const GlobalOptions& global, const RenewOptions& options);
int Execute(const GlobalOptions& global, const ReleaseOptions& options);
int Execute(const GlobalOptions& global, const InspectOptions& options);
int Execute(const GlobalOptions& global, const ListOptions& options);
int Execute(const GlobalOptions& global, const WatchOptions& options);
int Execute(const GlobalOptions& global, const PingOptions& options);
int Execute(const GlobalOptions& global, const CheckTokenOptions& options);
int Execute(const GlobalOptions& global, const SessionsOptions& options);
int Execute(const GlobalOptions& global, const CloseSessionOptions& options);
int Execute(const GlobalOptions& global, const ForceReleaseOptions& options);

}  // namespace holdfast::cli
