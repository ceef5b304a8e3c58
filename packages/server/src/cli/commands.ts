import type { MetaCommand } from '@mediabucket/cli/command'
import { fileCommands, type ListedFileCommand } from '@mediabucket/cli/file-commands'
import type { Command } from './command.ts'

/** A command, whose module is loaded only if it is used. Commands over HTTP do not use the settings of the service. */
export type ListedCommand =
  | ListedFileCommand
  | { readonly summary: string; readonly load: () => Promise<Command> }
  | { readonly summary: string; readonly loadMeta: () => Promise<MetaCommand> }

type Commands = Readonly<Record<string, ListedCommand>>

const service: Commands = {
  serve: {
    summary: 'Start the service.',
    load: async () => (await import('./serve.ts')).serve,
  },
  fsck: {
    summary: 'Check that rows and bytes are consistent, and repair them.',
    load: async () => (await import('./admin/fsck-command.ts')).fsck,
  },
  backup: {
    summary: 'Copy all data to a directory; works while the service is running.',
    load: async () => (await import('./admin/backup-commands.ts')).backup,
  },
  restore: {
    summary: 'Restore a backup into an empty data directory.',
    load: async () => (await import('./admin/backup-commands.ts')).restore,
  },
  migrate: {
    summary: 'Copy all data to other engines, such as PostgreSQL and S3.',
    load: async () => (await import('./admin/migrate-command.ts')).migrate,
  },
  vacuum: {
    summary: 'Return the free space of the catalog to the file system.',
    load: async () => (await import('./admin/vacuum-command.ts')).vacuum,
  },
  audit: {
    summary: 'Print the audit log: who changed or downloaded what.',
    load: async () => (await import('./admin/audit-command.ts')).audit,
  },
}

const access: Commands = {
  'bucket create': {
    summary: 'Create an empty bucket.',
    load: async () => (await import('./admin/bucket-commands.ts')).bucketCreate,
  },
  'bucket list': {
    summary: 'List the buckets with their numbers of items, sizes and quotas.',
    load: async () => (await import('./admin/bucket-commands.ts')).bucketList,
  },
  'bucket set': {
    summary: 'Change the settings of a bucket.',
    load: async () => (await import('./admin/bucket-commands.ts')).bucketSet,
  },
  'bucket delete': {
    summary: 'Delete a bucket with all its items, bytes and tokens.',
    load: async () => (await import('./admin/bucket-delete-command.ts')).bucketDelete,
  },
  'bucket usage': {
    summary: 'Print what a bucket has stored, sent and answered by day, or all buckets on one day.',
    load: async () => (await import('./admin/bucket-usage-command.ts')).bucketUsage,
  },
  'token create': {
    summary: 'Create a token for a bucket, and the bucket if it does not exist.',
    load: async () => (await import('./admin/token-commands.ts')).tokenCreate,
  },
  'token list': {
    summary: 'List the tokens, without their secrets.',
    load: async () => (await import('./admin/token-commands.ts')).tokenList,
  },
  'token revoke': {
    summary: 'Revoke a token; it is invalid from the next request on.',
    load: async () => (await import('./admin/token-commands.ts')).tokenRevoke,
  },
  'token rotate': {
    summary: 'Replace a token by a new one; both are valid for a while.',
    load: async () => (await import('./admin/token-rotate-command.ts')).tokenRotate,
  },
  'token keys': {
    summary: 'Print the keys of a token for programs that speak the S3 protocol.',
    load: async () => (await import('./admin/token-commands.ts')).tokenKeys,
  },
  'token restore': {
    summary: 'Give a user of the issuer whose access was revoked the access back.',
    load: async () => (await import('./admin/token-commands.ts')).tokenRestore,
  },
  ask: {
    summary: 'Create a link with which people without a token upload files.',
    load: async () => (await import('./admin/ask-command.ts')).ask,
  },
  'keys list': {
    summary: 'List the keys that sign URLs, without their secrets.',
    load: async () => (await import('./admin/key-commands.ts')).keysList,
  },
  'keys rotate': {
    summary: 'Create a key that signs URLs from now on.',
    load: async () => (await import('./admin/key-commands.ts')).keysRotate,
  },
  'keys remove': {
    summary: 'Remove a key that signs URLs; its links are invalid from the next request on.',
    load: async () => (await import('./admin/key-commands.ts')).keysRemove,
  },
  'webhook create': {
    summary: 'Create a webhook of a bucket, to which its changes are delivered.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookCreate,
  },
  'webhook list': {
    summary: 'List the webhooks with their states.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookList,
  },
  'webhook set': {
    summary: 'Change a webhook, switch it on or off, or replace its secret.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookSet,
  },
  'webhook delete': {
    summary: 'Delete a webhook.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookDelete,
  },
  'webhook test': {
    summary: 'Send a test to the receiver of a webhook.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookTest,
  },
  'webhook deliveries': {
    summary: 'List the last deliveries of a webhook.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookDeliveries,
  },
  'webhook redeliver': {
    summary: 'Repeat a delivery of a webhook.',
    load: async () => (await import('./admin/webhook-commands.ts')).webhookRedeliver,
  },
}

const shell: Commands = {
  completion: {
    summary: 'Print the completion of commands and options for bash, zsh or fish.',
    loadMeta: async () => (await import('@mediabucket/cli/completion')).completion,
  },
}

export const commands: Commands = { ...service, ...access, ...fileCommands, ...shell }

/** The commands in the help. */
export const commandGroups: readonly { readonly title: string; readonly commands: Commands }[] = [
  { title: 'The service and its data', commands: service },
  { title: 'Buckets, tokens, keys and webhooks, also while the service is running', commands: access },
  { title: 'The files of a bucket, over HTTP with a token', commands: fileCommands },
  { title: 'The shell', commands: shell },
]
