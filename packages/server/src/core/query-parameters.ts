import { Fault, type ParameterFault } from './fault.ts'

/** Reads the query parameters of a request, as the router decodes them. */
export interface ParameterReader {
  /** Returns `missing` if there is no such parameter. `parse` returns null for values that are not `accepts`. */
  read<T>(parameter: string, missing: T, accepts: string, parse: (text: string) => T | null): T
  /** Throws Fault `parameter-malformed`, which names all parameters with other values (docs/interface.md K3). */
  finish(): void
}

export function createParameterReader(values: Readonly<Record<string, unknown>>): ParameterReader {
  const faults: ParameterFault[] = []
  return {
    read(parameter, missing, accepts, parse) {
      const value = values[parameter]
      if (value === undefined) return missing
      // A repeated parameter is a list.
      const parsed = typeof value === 'string' ? parse(value) : null
      // The command line reads `accepts` from this text (cli/client/ls.ts).
      if (parsed === null) faults.push({ parameter, detail: `${parameter} accepts ${accepts}.` })
      return parsed ?? missing
    },
    finish() {
      if (faults.length > 0)
        throw new Fault('parameter-malformed', faults.map(({ detail }) => detail).join(' '), {
          parameters: faults,
        })
    },
  }
}

export const defaultListLimit = 100
export const maxListLimit = 500

const limitShape = /^[1-9][0-9]{0,2}$/

/** Reads the largest number of entries in one response to a list. */
export const readLimit = ({ read }: ParameterReader): number =>
  read('limit', defaultListLimit, `one integer from 1 to ${maxListLimit}`, (text) =>
    limitShape.test(text) && Number(text) <= maxListLimit ? Number(text) : null,
  )

/** Reads a cursor as sent; null for the start of the list. */
export const readCursor = ({ read }: ParameterReader): string | null =>
  read<string | null>('after', null, 'one cursor', (text) => text)
