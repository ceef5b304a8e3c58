import type { ClientCommand } from './command.ts'

/** A command over HTTP, whose module is loaded only if it is used. */
export interface ListedFileCommand {
  readonly summary: string
  readonly loadClient: () => Promise<ClientCommand>
}

/** The commands on the files of a bucket, over HTTP with a token. */
export const fileCommands: Readonly<Record<string, ListedFileCommand>> = {
  login: {
    summary: 'Store the URL of a service and a token, for the commands below.',
    loadClient: async () => (await import('./login.ts')).login,
  },
  logout: {
    summary: 'Remove what login has stored.',
    loadClient: async () => (await import('./login.ts')).logout,
  },
  upload: {
    summary: 'Upload files and directories to the bucket.',
    loadClient: async () => (await import('./upload.ts')).upload,
  },
  ls: {
    summary: 'List the items of the bucket.',
    loadClient: async () => (await import('./ls.ts')).ls,
  },
  get: {
    summary: 'Download an item, several items, or all items of the bucket.',
    loadClient: async () => (await import('./get.ts')).get,
  },
  sync: {
    summary: 'Make the bucket equal to a directory, or a directory to the bucket.',
    loadClient: async () => (await import('./sync.ts')).sync,
  },
  link: {
    summary: 'Create links of items that expire.',
    loadClient: async () => (await import('./items.ts')).link,
  },
  edit: {
    summary: 'Edit the name, texts and other data of an item.',
    loadClient: async () => (await import('./items.ts')).edit,
  },
  rm: {
    summary: 'Delete items from the bucket of a service.',
    loadClient: async () => (await import('./items.ts')).rm,
  },
  'trash list': {
    summary: 'List the deleted items that can be restored.',
    loadClient: async () => (await import('./items.ts')).trashList,
  },
  'trash restore': {
    summary: 'Restore deleted items.',
    loadClient: async () => (await import('./items.ts')).trashRestore,
  },
  'trash empty': {
    summary: 'Delete all items in the trash permanently.',
    loadClient: async () => (await import('./items.ts')).trashEmpty,
  },
  mcp: {
    summary: 'Serve the Model Context Protocol, for agents that start this command.',
    loadClient: async () => (await import('./mcp.ts')).mcp,
  },
  whoami: {
    summary: 'Show the token: its bucket, scopes and expiry.',
    loadClient: async () => (await import('./login.ts')).whoami,
  },
}
