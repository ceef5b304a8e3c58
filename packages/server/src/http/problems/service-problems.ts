import type { ProblemKinds } from './problem-kind.ts'

/** Problems of the service, which no change of the request prevents. */
export const serviceProblems = {
  'connections-too-many': {
    status: 503,
    title: 'Too many connections are open',
    cause:
      'The service has reached its limit of open connections (`MEDIABUCKET_MAX_CONNECTIONS`), or of connections from one address (`MEDIABUCKET_MAX_CONNECTIONS_PER_ADDRESS`).',
    cure: 'Reuse connections, close unused ones, and try again after the seconds in `Retry-After`.',
  },
  'catalog-busy': {
    status: 503,
    title: 'The service is busy',
    cause: 'Another process locked the catalog for longer than the service waits.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  overloaded: {
    status: 503,
    title: 'The service is out of resources',
    cause: 'The machine has no file descriptor, memory, thread or process left for the request.',
    cure: 'Try again after the seconds in `Retry-After`; the operator can raise the limits, such as that of open files.',
  },
  'storage-unavailable': {
    status: 503,
    title: 'The stored bytes are unavailable',
    cause: 'The directory of the stored bytes does not exist; its disk may not be mounted.',
    cure: 'Try again after the seconds in `Retry-After`; the operator may have to mount the disk.',
  },
  'issuer-unavailable': {
    status: 503,
    title: 'Tokens of the issuer cannot be verified',
    cause:
      'The service needs the keys of the issuer to verify the token, and cannot request them: it has not received them yet, or not for a day, or the key of the token is a new one.',
    cure: 'Try again after the seconds in `Retry-After`; the operator finds the reason in the log.',
  },
  'shutting-down': {
    status: 503,
    title: 'The service is stopping',
    cause: 'The service is stopping and finishes the requests in progress.',
    cure: 'Try again after the seconds in `Retry-After`.',
  },
  'not-ready': {
    status: 503,
    title: 'The service is not ready',
    cause: '`/readyz` found that the service cannot read or store data; `detail` names the reasons.',
    cure: 'Operators find the reasons in docs/operations.md and in the log.',
  },
  internal: {
    status: 500,
    title: 'Internal error',
    cause: 'An unexpected error occurred. The log contains it under the `instance` of the response.',
    cure: 'Send the operator the `instance`.',
  },
} satisfies ProblemKinds
