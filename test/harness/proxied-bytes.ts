/** The body of a response. */
export const bytesOf = async (response: Response): Promise<Buffer> =>
  Buffer.from(await response.arrayBuffer())

/** The headers without those that belong to one connection or one proxy. */
export const ownHeaders = ({ headers }: Response): [string, string][] =>
  [...headers].filter(([name]) => !['date', 'server', 'connection', 'keep-alive'].includes(name))
