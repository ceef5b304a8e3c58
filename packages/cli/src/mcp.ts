import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { clientCommand } from './client-command.ts'
import { CommandError, parse } from './command.ts'
import { createMcpServer } from './mcp-tools.ts'

export const mcp = clientCommand({
  help: `Usage: mediabucket mcp [--write]

Serves the Model Context Protocol on standard input and output, for agents that start this command. They find, describe and read the files of the bucket
of the token. A tool is offered only if the token has its scope. Names, captions and texts of files are returned as data of unknown origin.

Options:
  --write  Also offer the tools that change something: label and edit files, store files from URLs, create links, and, with the scope
           tokens:manage, create tokens for uploads, with limits and an expiry. Nothing is ever deleted.`,

  read(args) {
    const { values } = parse('mcp', {
      args: [...args],
      options: { write: { type: 'boolean', default: false } },
    })
    return { canWrite: values.write }
  },

  async run({ canWrite }, context) {
    const { bucket, scopes } = await context.client.whoami({ signal: context.interrupted })
    const granted = new Set(scopes)
    const ended = Promise.withResolvers<void>()
    const { stdin } = process
    const wire = new StdioServerTransport()
    const connection = serveStdio(() => createMcpServer(context, { bucket, granted, canWrite }), {
      transport: wire,
      onerror: (error) => context.report(`mediabucket: ${error.message}`),
    })
    // It also closes after an error that it has reported, such as a message that is too large.
    const { onclose } = wire
    wire.onclose = () => {
      onclose?.()
      ended.resolve()
    }
    stdin.once('end', ended.resolve).once('close', ended.resolve)
    context.interrupted.addEventListener('abort', () => ended.resolve(), { once: true })
    await ended.promise
    const isExpected = stdin.readableEnded || stdin.destroyed || context.interrupted.aborted
    await connection.close()
    if (!isExpected)
      throw new CommandError('the connection was closed after this error. Start the command again.')
  },
})
