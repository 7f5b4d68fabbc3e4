// The conversations that the page lists, with the words of their links. The last ones are scrolled into view: a list may load more.

const groups = (rules.links ?? []).map((selector) => [...document.querySelectorAll(selector)])
for (const links of groups) links.at(-1)?.scrollIntoView({block: 'end', behavior: 'instant'})
return JSON.stringify(groups.flat().map((link) => ({href: link.href, title: link.textContent.replace(/\s+/g, ' ').trim().slice(0, 120)})))
