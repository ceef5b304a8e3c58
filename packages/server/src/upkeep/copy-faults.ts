/** Why a backup or a restore did not copy the bytes of an item. The codes are stable: programs read them. */
export const copyFaults = {
  missing: 'the bytes do not exist',
  changed: 'the bytes are not those that were uploaded',
  unreadable: 'the bytes cannot be read',
  lost: 'the row of the item cannot be read, so the backup does not have the item',
  foreign: 'the path of the bytes is a link, a directory or a special file',
  malformed: 'the row has an id that the service did not create',
  blocked: 'the path of the copy is in use by a file that no backup wrote',
} as const

export type CopyFault = keyof typeof copyFaults
