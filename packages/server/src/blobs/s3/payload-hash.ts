interface HeaderRequest {
  readonly headers: Record<string, string>
}
const hasHeaders = (request: unknown): request is HeaderRequest =>
  typeof request === 'object' && request !== null && 'headers' in request

/** Signs the SHA-256 of the body, which the store compares with the received bytes; otherwise the SDK would compute it again. */
export const payloadHash = (sha256: Uint8Array) =>
  [
    <Args extends { request?: unknown }, Result>(next: (args: Args) => Promise<Result>) =>
      (args: Args): Promise<Result> => {
        if (hasHeaders(args.request))
          args.request.headers['x-amz-content-sha256'] = Buffer.from(sha256).toString('hex')
        return next(args)
      },
    { step: 'build', name: 'payloadHash' },
  ] as const
