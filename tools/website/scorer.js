// The order of what the search finds. Sphinx adds these numbers for the places in which it finds the words; `score` then
// prefers the page of questions, functions before the methods of the same name, and short paths before long ones.
var Scorer = {
  objNameMatch: 30,
  objPartialMatch: 6,
  objPrio: { 0: 5, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([page, title, anchor, description, score]) => {
    if (page === "questions") return score + 20;
    if (!page.startsWith("reference/") || !description) return score;
    const isMember = / (method|property|attribute)/.test(description);
    return score - (isMember ? 3 : 0) - title.split(".").length / 10;
  },
};
