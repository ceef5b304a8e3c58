import { spawnSync } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { CommandError } from '@mediabucket/cli/command'
import { setHome } from '../service/environment.ts'

/**
 * Run by root, becomes the user who owns the data directory, so that the service can use what a command creates, and a local PostgreSQL
 * server knows the user. Does nothing for another user, and where the directory does not exist or belongs to root. Throws CommandError.
 */
export function becomeOwnerOf(directory: string): void {
  if (process.getuid?.() !== 0) return
  const owner = ownerOf(directory)
  if (owner === null || owner.uid === 0) return
  // The groups first: afterwards the process may not change them.
  process.setgroups?.([...groupsOf(owner.uid), owner.gid])
  process.setgid?.(owner.gid)
  process.setuid?.(owner.uid)
  setHome(homeOfUser())
  requireReadable(directory)
}

/** Null if it does not exist, or if root has no rights to look it up, as in some containers: then its use fails with the reason. */
function ownerOf(directory: string): { readonly uid: number; readonly gid: number } | null {
  try {
    return statSync(directory)
  } catch {
    return null
  }
}

/** The modules of a command are loaded later, by the new user. */
function requireReadable(data: string): void {
  try {
    accessSync(import.meta.filename, constants.R_OK)
  } catch {
    throw new CommandError(
      `the user who owns ${data} cannot read the program in ${import.meta.dirname}. Install it where all users can read it.`,
    )
  }
}

/** The groups of a user; none where the user has no entry, as in a container. */
function groupsOf(user: number): number[] {
  const { status, stdout } = spawnSync('id', ['-G', `${user}`], { encoding: 'utf8' })
  return status === 0 ? stdout.trim().split(' ').map(Number) : []
}

/** `/` where the user has no entry. */
function homeOfUser(): string {
  try {
    return userInfo().homedir
  } catch {
    return '/'
  }
}
