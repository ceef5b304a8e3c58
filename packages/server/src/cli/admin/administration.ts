import { connectService, withService } from '@mediabucket/cli/client-command'
import {
  administrationHelp,
  type ConnectionOptions,
  readClientSettings,
  takeConnectionOptions,
} from '@mediabucket/cli/client-settings'
import { CommandError, exitCodes } from '@mediabucket/cli/command'
import { shellWord } from '@mediabucket/cli/processes'
import type { Client, ServiceClient } from '@mediabucket/client'
import { Fault } from '../../core/faults.ts'
import type { Catalog } from '../../storage/catalog/catalog.ts'
import type { Command, CommandContext } from '../command.ts'
import { withCatalog } from './open-catalog.ts'

/** A command on the data of a service, or over HTTP: by its arguments. */
export interface AdministrationContext extends CommandContext {
  readonly connection: ConnectionOptions
}

/** A command with the options of a connection, which it gets apart from its other arguments. */
export const administrationCommand = ({
  help,
  run,
}: {
  readonly help: string
  readonly run: (args: readonly string[], context: AdministrationContext) => Promise<void>
}): Command => ({
  help: `${help}\n\n${administrationHelp}`,
  async run(args, context) {
    const { connection, rest } = takeConnectionOptions(args)
    // The settings of the service are read only if the command works on the data.
    await run(rest, Object.create(context, { connection: { value: connection, enumerable: true } }))
  },
})

/** Whether the command works over HTTP. */
export const isRemote = ({ connection }: AdministrationContext): boolean => Object.keys(connection).length > 0

/** The options of the connection, with a space before each, for a command in a message: it then acts on the same service. */
export const connectionText = ({ connection }: AdministrationContext): string =>
  Object.entries(connection)
    .map(([name, value]) => ` --${name} ${shellWord(value)}`)
    .join('')

/** A service over HTTP. Calls end when the command is interrupted. */
export interface RemoteService {
  readonly service: ServiceClient
  /** The bucket of the token, if it is one of a bucket. */
  readonly client: Client
}

/** Does the work over HTTP or on the data. Throws CommandError for a Fault, as for the same problem over HTTP. */
export async function administer(
  context: AdministrationContext,
  overHttp: (remote: RemoteService) => Promise<void>,
  onData: (catalog: Catalog) => Promise<void>,
  openCatalog: typeof withCatalog = withCatalog,
): Promise<void> {
  if (isRemote(context)) {
    const settings = readClientSettings(context.connection)
    return await withService(settings, null, async ({ interrupted }) =>
      overHttp(await connectService(settings, context.report, interrupted)),
    )
  }
  try {
    await openCatalog(context.config, onData)
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    throw new CommandError(error.message, error.code.endsWith('-unknown') ? exitCodes.notFound : 1)
  }
}
